#include "cli/daemon/hook_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cli/daemon/log.h"
#include "cli/output/text.h"
#include "fs/host/mount_table.h"

namespace txfs::cli {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

/// A longer answer is none.
constexpr size_t kMaxLine = size_t{64} << 10;

struct Pipe {
  UniqueFd read, write;
};

Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// What a process of its own is started with: a session, no signal blocked,
/// SIGPIPE not ignored, and no descriptors but the first three.
class Spawn {
 public:
  Spawn(int in, int out, int err) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    sigset_t ignored;
    sigemptyset(&none);
    sigemptyset(&ignored);
    sigaddset(&ignored, SIGPIPE);
    error_ = FirstOf(
        {::posix_spawn_file_actions_adddup2(&actions_, in, STDIN_FILENO),
         ::posix_spawn_file_actions_adddup2(&actions_, out, STDOUT_FILENO),
         ::posix_spawn_file_actions_adddup2(&actions_, err, STDERR_FILENO),
         ::posix_spawn_file_actions_addclosefrom_np(&actions_,
                                                    STDERR_FILENO + 1),
         ::posix_spawnattr_setsigmask(&attributes_, &none),
         ::posix_spawnattr_setsigdefault(&attributes_, &ignored),
         ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSID |
                                                      POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF)});
  }
  ~Spawn() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  Spawn(const Spawn&) = delete;
  Spawn& operator=(const Spawn&) = delete;

  Result<pid_t> Run(const std::vector<std::string>& command) {
    // By a shell outside of all mounts, which starts at once: a program may
    // stand in a directory that the operation has locked. And this process has
    // no umask, and posix_spawn sets none.
    std::vector<std::string> words{"/bin/sh", "-c",
                                   "umask 077 && exec \"$0\" \"$@\""};
    std::ranges::copy(command, std::back_inserter(words));
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_t pid = 0;
    const int error =
        error_ != 0 ? error_
                    : ::posix_spawn(&pid, arguments[0], &actions_, &attributes_,
                                    arguments.data(), environ);
    if (error == 0) return pid;
    return Fail(error, "cannot start the hook " + command[0]);
  }

 private:
  static int FirstOf(std::initializer_list<int> errors) {
    const auto* const error =
        std::ranges::find_if(errors, [](int one) { return one != 0; });
    return error == errors.end() ? 0 : *error;
  }

  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
  int error_ = 0;
};

std::optional<HookProcess::Verdict> VerdictNamed(const std::string& name) {
  if (name == "allow") return HookProcess::Verdict::kAllow;
  if (name == "deny") return HookProcess::Verdict::kDeny;
  if (name == "ask") return HookProcess::Verdict::kAsk;
  return std::nullopt;
}

std::unexpected<Error> Nonsense(std::string_view line) {
  constexpr size_t kShown = 100;
  return Fail(0, "the hook's answer is not valid: " +
                     EscapeControls(line.substr(0, kShown)));
}

}  // namespace

HookProcess::HookProcess() : wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// --- whose turn it is ------------------------------------------------------

void HookProcess::Wake() const {
  const uint64_t one = 1;
  // Fails only when the counter is full, and then it is set anyway.
  (void)!::write(wake_.get(), &one, sizeof one);
}

void HookProcess::Interrupt(Turn& turn) {
  const MutexLock lock(mutex_);
  turn.signalled = true;
  changed_.NotifyAll();
  Wake();
}

void HookProcess::Suspend() {
  const MutexLock lock(mutex_);
  ++suspended_;
  changed_.NotifyAll();
  Wake();
}

void HookProcess::Resume() {
  const MutexLock lock(mutex_);
  --suspended_;
}

Status HookProcess::CheckTurnLocked(const Turn& turn) {
  if (turn.signalled && turn.wait->HasToEnd()) {
    return Fail(0, "a signal came before an answer");
  }
  if (suspended_ > 0) return Fail(0, "the wait ended before the hook answered");
  if (Steady::now() < turn.deadline) return {};
  return Fail(0, "the hook did not answer in time");
}

Result<milliseconds> HookProcess::TimeLeft(const Turn& turn) {
  const MutexLock lock(mutex_);
  TRY(CheckTurnLocked(turn));
  const auto left =
      std::chrono::ceil<milliseconds>(turn.deadline - Steady::now());
  return turn.signalled ? std::min(left, LongWait::kSignalInterval) : left;
}

Status HookProcess::TakeTurn(Turn& turn) {
  const MutexLock lock(mutex_);
  for (;;) {
    TRY(CheckTurnLocked(turn));
    if (!busy_) break;
    if (turn.signalled) {
      changed_.WaitFor(mutex_, LongWait::kSignalInterval);
    } else {
      changed_.Wait(mutex_);
    }
  }
  busy_ = true;
  return {};
}

void HookProcess::ForgetWakes() const {
  uint64_t old = 0;
  // Nothing to read: nobody woke the one before for nothing.
  (void)!::read(wake_.get(), &old, sizeof old);
}

void HookProcess::EndTurn() {
  const MutexLock lock(mutex_);
  busy_ = false;
  changed_.NotifyAll();
}

Result<HookProcess::Reply> HookProcess::Ask(
    const policy::HookSettings& settings, Json question, Origin origin,
    LongWait* wait) {
  if (origin == Origin::kWriteBack) {
    return AskShared(settings, std::move(question), wait);
  }
  {
    const MutexLock lock(mutex_);
    if (waiting_ >= kMaxWaiting) {
      return Fail(0, "too many operations wait for the hook already");
    }
    ++waiting_;
  }
  Result<Reply> reply = AskAlone(settings, std::move(question), wait);
  const MutexLock lock(mutex_);
  --waiting_;
  return reply;
}

Result<HookProcess::Reply> HookProcess::AskAlone(
    const policy::HookSettings& settings, Json question, LongWait* wait) {
  Turn turn{.wait = wait};
  const bool may_wait =
      wait == nullptr || wait->Begin([this, &turn] { Interrupt(turn); });
  if (!may_wait)
    return Fail(0, "no thread could serve the mount during the wait");
  Result<Reply> reply = Fail(0, "");
  if (Status taken = TakeTurn(turn)) {
    // Whoever woke this one is seen by TimeLeft.
    ForgetWakes();
    turn.deadline = Steady::now() + settings.timeout;
    reply = Exchange(settings, std::move(question), turn);
    EndTurn();
  } else {
    reply = std::unexpected(std::move(taken).error());
  }
  if (wait != nullptr) wait->End();
  return reply;
}

Result<HookProcess::Reply> HookProcess::AskShared(
    const policy::HookSettings& settings, Json question, LongWait* wait) {
  std::shared_ptr<Shared> shared;
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    for (const auto& other : shared_) {
      if (other->question == question) shared = other;
    }
    if (!shared) {
      is_first = true;
      shared = std::make_shared<Shared>(Shared{question, {}});
      shared_.push_back(shared);
    }
  }
  if (!is_first) return AwaitShared(*shared, wait);
  const Result<Reply> reply = AskAlone(settings, std::move(question), wait);
  const MutexLock lock(mutex_);
  shared->reply = reply;
  std::erase(shared_, shared);
  changed_.NotifyAll();
  return reply;
}

Result<HookProcess::Reply> HookProcess::AwaitShared(const Shared& shared,
                                                    LongWait* wait) {
  Turn turn{.wait = wait};
  const bool may_wait =
      wait == nullptr || wait->Begin([this, &turn] { Interrupt(turn); });
  if (!may_wait)
    return Fail(0, "no thread could serve the mount during the wait");
  {
    const MutexLock lock(mutex_);
    // The first one ends when its own wait is over.
    while (!shared.reply) changed_.Wait(mutex_);
  }
  if (wait != nullptr) wait->End();
  const MutexLock lock(mutex_);
  return *shared.reply;
}

// --- the process -----------------------------------------------------------

Result<HookProcess::Reply> HookProcess::Exchange(
    const policy::HookSettings& settings, Json question, const Turn& turn) {
  if (running_ != settings || HasEnded()) Stop();
  if (!running_) TRY(Start(settings));
  const uint64_t id = ++last_id_;
  question["id"] = id;
  logged_ = 0;
  Status sent = RefuseEarlyAnswer();
  if (sent) sent = WriteLine(Dump(question) + "\n", turn);
  Result<Reply> reply =
      sent ? ReadReply(id, turn)
           : Result<Reply>(std::unexpected(std::move(sent).error()));
  LogWords();
  // A whole line was written, or who reads would be confused.
  if (!reply) Stop();
  return reply;
}

Status HookProcess::Start(const policy::HookSettings& settings) {
  Pipe in = TRY(MakePipe());
  Pipe out = TRY(MakePipe());
  Pipe err = TRY(MakePipe());
  Spawn spawn(in.read.get(), out.write.get(), err.write.get());
  pid_ = TRY(spawn.Run(settings.command));
  in_ = std::move(in.write);
  out_ = std::move(out.read);
  err_ = std::move(err.read);
  for (const UniqueFd* fd : {&in_, &out_, &err_}) {
    ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
  }
  received_.clear();
  running_ = settings;
  return {};
}

/// It is not waited for: its number is its own until Stop.
bool HookProcess::HasEnded() const {
  siginfo_t info{};
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info,
                  WEXITED | WNOHANG | WNOWAIT) != 0 ||
         info.si_pid != 0;
}

HookProcess::~HookProcess() {
  Stop();
  Reap(0);
}

void HookProcess::Reap(int flags) {
  std::erase_if(killed_, [flags](pid_t pid) {
    pid_t ended = 0;
    do {
      ended = ::waitpid(pid, nullptr, flags);
    } while (ended < 0 && errno == EINTR);
    return ended != 0;
  });
}

void HookProcess::Stop() {
  if (!running_) return;
  // With what it started, as far as that stayed in its group.
  ::kill(-pid_, SIGKILL);
  killed_.push_back(pid_);
  Reap(WNOHANG);
  in_.Reset();
  out_.Reset();
  err_.Reset();
  running_.reset();
}

Status HookProcess::AwaitReady(int fd, short events, const Turn& turn) {
  for (;;) {
    const milliseconds left = TRY(TimeLeft(turn));
    std::array<pollfd, 3> fds{
        {{.fd = fd, .events = events, .revents = 0},
         {.fd = wake_.get(), .events = POLLIN, .revents = 0},
         {.fd = err_.get(), .events = POLLIN, .revents = 0}}};
    const int timeout = static_cast<int>(std::max<int64_t>(left.count(), 0));
    if (::poll(fds.data(), fds.size(), timeout) < 0 && errno != EINTR) {
      return Fail(errno, "wait for the hook");
    }
    if (fds[2].revents != 0) LogWords();
    if (fds[0].revents != 0) return {};
    uint64_t woken = 0;
    // What it was woken for is looked at next.
    (void)!::read(wake_.get(), &woken, sizeof woken);
  }
}

/// Read is more than is logged, so that it does not wait for us; but whoever
/// writes without end does not keep us here.
void HookProcess::LogWords() {
  constexpr size_t kMaxLogged = 4096;
  constexpr int kPieces = 16;
  std::array<char, 4096> piece{};
  for (int i = 0; i < kPieces; ++i) {
    const ssize_t n = ::read(err_.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    // Closed, it would be ready for ever.
    if (n == 0) err_.Reset();
    if (n <= 0) return;
    const size_t size = std::min(static_cast<size_t>(n), kMaxLogged - logged_);
    logged_ += size;
    if (size == 0) continue;
    LogInfo("hook: " + EscapeControls(std::string_view(piece.data(), size)));
    if (logged_ == kMaxLogged) LogInfo("hook: further output is left out");
  }
}

/// What was there before the question is no answer to it.
Status HookProcess::RefuseEarlyAnswer() {
  if (received_.empty()) {
    std::array<char, 1> byte{};
    const ssize_t n = ::read(out_.get(), byte.data(), byte.size());
    if (n <= 0) return {};  // nothing; or it has ended, which reading tells
  }
  return Fail(0, "the hook answered before it was asked");
}

Status HookProcess::WriteLine(std::string_view line, const Turn& turn) {
  while (!line.empty()) {
    TRY(AwaitReady(in_.get(), POLLOUT, turn));
    const ssize_t n = ::write(in_.get(), line.data(), line.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return Fail(errno, "the hook does not read");
    line.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

Result<std::string> HookProcess::ReadLine(const Turn& turn) {
  std::array<char, 4096> piece{};
  for (;;) {
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    if (received_.size() > kMaxLine) return Nonsense(received_);
    TRY(AwaitReady(out_.get(), POLLIN, turn));
    const ssize_t n = ::read(out_.get(), piece.data(), piece.size());
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return Fail(errno, "read from the hook");
    if (n == 0) return Fail(0, "the hook ended before it answered");
    received_.append(piece.data(), static_cast<size_t>(n));
  }
}

Result<HookProcess::Reply> HookProcess::ReadReply(uint64_t id,
                                                  const Turn& turn) {
  return ParseReply(TRY(ReadLine(turn)), id);
}

Result<HookProcess::Reply> HookProcess::ParseReply(std::string_view line,
                                                   uint64_t id) {
  const Json json = ParseStrictly(line);
  const auto verdict = VerdictNamed(GetBytes(json, "verdict"));
  if (!verdict || GetUint(json, "id") != id) return Nonsense(line);
  return Reply{.verdict = *verdict, .reason = GetBytes(json, "reason")};
}

}  // namespace txfs::cli

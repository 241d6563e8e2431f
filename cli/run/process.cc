#include "cli/run/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <new>
#include <set>
#include <tuple>
#include <utility>

#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/protocol/framing.h"
#include "cli/run/id_map.h"
#include "cli/run/proxy.h"
#include "cli/run/sandbox_filter.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr const char* kBwrap = "bwrap";

/// The caller's standard error, while that of bwrap is read by the supervisor;
/// the command gets it back. One digit, as a shell wants it.
constexpr int kErrors = 9;
constexpr const char* kTakeErrors = "exec \"$@\" 2>&9 9>&-";
constexpr int kOwnFailure = 125;

/// How long a command that was told to end may take, milliseconds.
constexpr uint64_t kGraceMs = 5000;

/// Exit codes of runs that were stopped.
constexpr int kTimeoutCode = 124;
constexpr int kLimitCode = 123;

uint64_t NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 +
         static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
}

std::string ReadMemory(int fd) {
  std::string text(
      static_cast<size_t>(std::max<off_t>(::lseek(fd, 0, SEEK_END), 0)), 0);
  const ssize_t n = ::pread(fd, text.data(), text.size(), 0);
  text.resize(static_cast<size_t>(std::max<ssize_t>(n, 0)));
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// The same file with a number that no other use has.
UniqueFd Raised(UniqueFd fd) {
  constexpr int kFirst = 20;
  UniqueFd raised(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirst));
  return raised.valid() ? std::move(raised) : std::move(fd);
}

/// A pipe whose ends close at an exec.
struct Pipe {
  UniqueFd read, write;
};
Result<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool WriteText(const char* path, std::string_view text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) ==
                           static_cast<ssize_t>(text.size());
}

/// Signals that end a process and are passed on to the command.
constexpr std::array kPassedOn = {SIGTERM, SIGHUP, SIGINT, SIGQUIT};

sigset_t Watched() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) sigaddset(&set, signal);
  sigaddset(&set, SIGCHLD);
  return set;
}

/// Blocks the watched signals; restores the mask at its end.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t set = Watched();
    ::pthread_sigmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { Restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

  void Restore() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

/// The foreground process group of the terminal, which a command with job
/// control changes; restores it at its end.
class Foreground {
 public:
  Foreground() : terminal_(::open("/dev/tty", O_RDWR | O_CLOEXEC)) {
    if (terminal_.valid()) group_ = ::tcgetpgrp(terminal_.get());
  }
  ~Foreground() {
    if (!terminal_.valid() || group_ != ::getpgrp()) return;
    // A process of the background gets SIGTTOU for it.
    const auto before = ::signal(SIGTTOU, SIG_IGN);
    ::tcsetpgrp(terminal_.get(), group_);
    ::signal(SIGTTOU, before);
  }
  Foreground(const Foreground&) = delete;
  Foreground& operator=(const Foreground&) = delete;

 private:
  UniqueFd terminal_;
  pid_t group_ = -1;
};

/// Signals that a terminal, which need not be a standard stream, or another
/// process sends to the whole process group; but those that the caller ignores.
std::vector<int> GroupSignals() {
  std::vector<int> signals;
  for (const int signal : {SIGINT, SIGQUIT}) {
    struct sigaction action{};
    const bool is_ignored = ::sigaction(signal, nullptr, &action) == 0 &&
                            action.sa_handler == SIG_IGN;
    if (!is_ignored) signals.push_back(signal);
  }
  return signals;
}

/// The end of bwrap leaves pid 1 of its sandbox to this process, which so
/// learns what the sandbox has used. Until the end of this.
class Subreaper {
 public:
  Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
  ~Subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;
};

/// The words of a command for exec.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// Copies a regular file that is the standard input into a pipe. Through the
/// descriptor itself the command could open the file again, for writing, or
/// what lies around it: /proc/self/fd leads to the caller's mount.
class Feeder {
 public:
  /// Does nothing for another kind of input. Errors: a standard stream is a
  /// directory.
  static Result<Feeder> Start() {
    struct stat st{};
    for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
      if (::fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        return Fail(EISDIR, "a standard stream of the command is a directory",
                    "redirect it to a file or a pipe");
      }
    }
    Feeder feeder;
    const int flags = ::fcntl(STDIN_FILENO, F_GETFL);
    if (::fstat(STDIN_FILENO, &st) != 0 || !S_ISREG(st.st_mode) || flags < 0 ||
        (flags & O_ACCMODE) != O_RDONLY) {
      return feeder;
    }
    void* shared = ::mmap(nullptr, sizeof(Written), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return Fail(errno, "mmap");
    feeder.written_ = new (shared) Written(0);
    feeder.start_ = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
    Pipe pipe = TRY(MakePipe());
    feeder.pid_ = ::fork();
    if (feeder.pid_ < 0) return Fail(errno, "cannot start a process");
    if (feeder.pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(pipe.write.get(), STDOUT_FILENO);
      ::close_range(STDERR_FILENO + 1, ~0U, 0);
      feeder.Copy();
    }
    feeder.input_ = std::move(pipe.read);
    return feeder;
  }
  /// The caller's next command reads on where this one has stopped.
  ~Feeder() {
    if (written_ == nullptr) return;
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
      int unread = 0;
      ::ioctl(input_.get(), FIONREAD, &unread);
      ::lseek(STDIN_FILENO, start_ + written_->load() - unread, SEEK_SET);
    }
    ::munmap(written_, sizeof(Written));
  }
  Feeder(Feeder&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)),
        start_(other.start_),
        input_(std::move(other.input_)),
        written_(std::exchange(other.written_, nullptr)) {}
  Feeder& operator=(Feeder&&) = delete;

  /// The end of the pipe for the command; -1: it has the caller's input.
  [[nodiscard]] int input() const { return input_.get(); }

 private:
  using Written = std::atomic<int64_t>;

  Feeder() = default;
  [[noreturn]] void Copy() {
    // Such a write is done as a whole, or not at all when this is killed.
    std::array<char, PIPE_BUF> piece{};
    for (;;) {
      const int64_t at = written_->load();
      const ssize_t n =
          ::pread(STDIN_FILENO, piece.data(), piece.size(), start_ + at);
      if (n <= 0) ::_exit(n < 0);
      const ssize_t written =
          ::write(STDOUT_FILENO, piece.data(), static_cast<size_t>(n));
      if (written < 0) ::_exit(1);
      written_->fetch_add(written);
    }
  }

  pid_t pid_ = -1;
  off_t start_ = 0;
  UniqueFd input_;
  Written* written_ = nullptr;  ///< bytes; shared with the process
};

/// What the child needs; made before the fork.
struct Start {
  std::vector<std::string> words;  ///< of bwrap
  std::vector<int> kept;           ///< descriptors for bwrap
  bool is_root = false;
  const Limits* limits = nullptr;
  bool may_nest = false;
  /// The standard input of the command, if it is not that of this process.
  int input = -1;
  int errors = -1;  ///< the standard error of bwrap
  bool output_to_errors = false;
  /// Signals that bwrap ignores, and the command does not.
  std::vector<int> reset;
  /// The supervisor writes one byte when the ids are mapped.
  Pipe mapped;
  /// The child writes one byte when it has a user namespace.
  Pipe unshared;
  /// Where the child makes a network namespace and sends a socket that listens
  /// there for the proxy; invalid: it does not.
  UniqueFd proxied;
};

/// Makes a mount namespace into which no later mount of the machine comes. In
/// a user namespace, because another user may make one only there; for root, so
/// that it has no capability over the machine.
bool EnterStage(const Start& start) {
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  const int network = start.proxied.valid() ? CLONE_NEWNET : 0;
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS | network) != 0) return false;
  if (start.is_root) {
    char byte = 1;
    if (::write(start.unshared.write.get(), &byte, 1) != 1 ||
        ::read(start.mapped.read.get(), &byte, 1) != 1) {
      return false;
    }
    // As --disable-userns of bwrap, which makes no user namespace here.
    if (!start.may_nest &&
        !WriteText("/proc/sys/user/max_user_namespaces", "0")) {
      return false;
    }
  } else {
    WriteText("/proc/self/setgroups", "deny");
    if (!WriteText("/proc/self/uid_map",
                   std::to_string(uid) + " " + std::to_string(uid) + " 1") ||
        !WriteText("/proc/self/gid_map",
                   std::to_string(gid) + " " + std::to_string(gid) + " 1")) {
      return false;
    }
  }
  return ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
}

/// Sends the supervisor the socket for the proxy.
bool SendListener(const Start& start) {
  Frame frame;
  frame.descriptor = std::make_shared<UniqueFd>(ListenForProxy());
  return frame.descriptor->valid() &&
         WriteFrame(start.proxied.get(), frame).has_value();
}

void SayNotLimited() {
  constexpr std::string_view kSaid =
      "error: the limits cannot be set for the command\n";
  std::ignore = ::write(STDERR_FILENO, kSaid.data(), kSaid.size());
}

[[noreturn]] void RunStage(Start& start, const BlockedSignals& signals,
                           pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);
  // Its own end would keep it waiting when the supervisor cannot map the ids.
  start.mapped.write.Reset();
  const bool limited = start.limits == nullptr || start.limits->Enter();
  const bool staged = EnterStage(start);
  if (start.is_root && !staged) ::_exit(1);
  if (start.proxied.valid() && !(staged && SendListener(start))) ::_exit(1);
  if (!limited || (start.limits != nullptr && !start.limits->Restrict(true))) {
    SayNotLimited();
    ::_exit(1);
  }
  if (start.input >= 0) ::dup2(start.input, STDIN_FILENO);
  // The monitor that bwrap leaves outside would die of them, and the sandbox
  // with it, although the command may handle them.
  for (const int signal : start.reset) ::signal(signal, SIG_IGN);
  if (start.output_to_errors) ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::dup2(STDERR_FILENO, kErrors);
  ::dup2(start.errors, STDERR_FILENO);
  // bwrap passes what it inherits on to the command.
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  for (const int fd : start.kept) ::fcntl(fd, F_SETFD, 0);
  signals.Restore();
  const std::vector<char*> argv = Pointers(start.words);
  ::execvp(kBwrap, argv.data());
  ::_exit(127);
}

/// Gives the user namespace of `pid` all ids. False: it has ended.
bool MapAllIds(pid_t pid, const Start& start) {
  char byte = 0;
  if (::read(start.unshared.read.get(), &byte, 1) != 1) return false;
  const std::string process = "/proc/" + std::to_string(pid);
  return WriteText((process + "/uid_map").c_str(), IdentityMap("uid_map")) &&
         WriteText((process + "/gid_map").c_str(), IdentityMap("gid_map")) &&
         ::write(start.mapped.write.get(), &byte, 1) == 1;
}

/// A sandbox that runs.
class Supervision {
 public:
  /// `status`: what bwrap writes about `child`; invalid: the child is the
  /// command.
  Supervision(pid_t child, UniqueFd status, const RunBounds& bounds,
              const std::function<void(pid_t)>& on_begin)
      : child_(child),
        is_plain_(!status.valid()),
        status_(std::move(status)),
        limits_(bounds.limits),
        on_begin_(on_begin),
        needed_(bounds.needed),
        deadline_(bounds.timeout_ms == 0 ? 0 : NowMs() + bounds.timeout_ms) {
    const sigset_t set = Watched();
    signals_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  Ended Wait() {
    Ended ended = WaitForEnd();
    ended.interrupted = interrupted_;
    return ended;
  }

 private:
  Ended WaitForEnd() {
    int state = 0;
    rusage usage{};
    pid_t ended = 0;
    while ((ended = ::wait4(child_, &state, WNOHANG, &usage)) == 0) {
      WaitForEvent();
    }
    if (ended < 0) lost_ = true;
    ReadStatus();
    AwaitEndOfAll(usage);
    if (limits_ != nullptr) {
      limits_->End(usage);
      if (!exceeded_) exceeded_ = limits_->Exceeded(0);
    }
    if (lost_) return {Ended::Why::kLost, kOwnFailure};
    if (exceeded_) return {Ended::Why::kLimit, kLimitCode, exceeded_};
    if (timed_out_) return {Ended::Why::kTimeout, kTimeoutCode};
    if (code_) return {Ended::Why::kItself, *code_};
    if (stopped_by_ != 0) return {Ended::Why::kItself, 128 + stopped_by_};
    const bool begun = is_plain_ || (first_ != 0 && WIFSIGNALED(state));
    // It met the process that was about to execute the command.
    if (!begun && sent_ != 0) return {Ended::Why::kItself, 128 + sent_};
    return {begun ? Ended::Why::kItself : Ended::Why::kNotBegun,
            WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state)};
  }

  /// bwrap may end before the processes of its sandbox have. The kernel ends
  /// them before pid 1 counts as ended. `usage`: of bwrap; adds theirs.
  void AwaitEndOfAll(rusage& usage) const {
    if (!first_fd_.valid()) return;
    ::syscall(SYS_pidfd_send_signal, first_fd_.get(), SIGKILL, nullptr, 0);
    pollfd ended{first_fd_.get(), POLLIN, 0};
    while (::poll(&ended, 1, -1) < 0 && errno == EINTR) {
    }
    rusage rest{};
    // Not if bwrap has waited for it: then `usage` has it all.
    if (::wait4(first_, nullptr, WNOHANG, &rest) != first_) return;
    timeradd(&usage.ru_utime, &rest.ru_utime, &usage.ru_utime);
    timeradd(&usage.ru_stime, &rest.ru_stime, &usage.ru_stime);
    usage.ru_maxrss = std::max(usage.ru_maxrss, rest.ru_maxrss);
  }

  /// How often to look at the limits, milliseconds; -1: not at all.
  [[nodiscard]] int Interval() const {
    return limits_ == nullptr ? -1 : limits_->interval_ms();
  }

  void WaitForEvent() {
    // poll(2) ignores those that are negative.
    std::vector<pollfd> fds = {
        {signals_.get(), POLLIN, 0},
        {status_.valid() ? status_.get() : -1, POLLIN, 0}};
    if (!lost_) {
      for (const int process : needed_) fds.push_back({process, POLLIN, 0});
    }
    int wait_ms = exceeded_ ? -1 : Interval();
    if (deadline_ != 0) {
      const uint64_t now = NowMs();
      if (now >= deadline_) return OnDeadline();
      const int left =
          static_cast<int>(std::min<uint64_t>(deadline_ - now, 3'600'000));
      wait_ms = wait_ms < 0 ? left : std::min(wait_ms, left);
    }
    if (::poll(fds.data(), fds.size(), wait_ms) < 0) return;
    if (fds[1].revents != 0) ReadStatus();
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents == 0) continue;
      lost_ = true;
      Kill();
      return;
    }
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      OnSignal(info);
    }
    if (exceeded_ || Interval() < 0) return;
    exceeded_ = limits_->Exceeded(is_plain_ ? child_ : first_);
    if (exceeded_) Kill();
  }

  void OnDeadline() {
    if (ending_) return Kill();
    timed_out_ = true;
    End(SIGTERM);
  }

  void OnSignal(const signalfd_siginfo& info) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) return;
    if (signal == SIGINT) interrupted_ = true;
    // The terminal has sent it to the command, too, which may go on.
    if (info.ssi_code == SI_KERNEL && (signal == SIGINT || signal == SIGQUIT)) {
      return;
    }
    if (signal == SIGTERM || signal == SIGHUP) {
      if (ending_) return Kill();
      End(signal);
      return;
    }
    Send(signal);
  }

  /// Asks the command to end, and sets the time after which it is killed.
  void End(int signal) {
    ending_ = true;
    deadline_ = NowMs() + kGraceMs;
    Send(signal);
  }

  void Send(int signal) {
    const pid_t command = is_plain_     ? child_
                          : first_ == 0 ? 0
                                        : ChildOf(first_);
    if (command > 0) {
      sent_ = signal;
      ::kill(command, signal);
    } else {
      stopped_by_ = signal;
      ::kill(child_, SIGKILL);
    }
  }

  void Kill() {
    deadline_ = 0;
    ::kill(first_ != 0 ? first_ : child_, SIGKILL);
  }

  /// bwrap writes one object for the start of its pid 1, and one for the end of
  /// the command.
  void ReadStatus() {
    std::array<char, 4096> piece{};
    for (;;) {
      if (!status_.valid()) return;
      const ssize_t n = ::read(status_.get(), piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return;
      if (n == 0) {
        status_.Reset();
        return;
      }
      text_.append(piece.data(), static_cast<size_t>(n));
      for (size_t end; (end = text_.find('\n')) != std::string::npos;) {
        TakeStatus(ParseBounded(text_.substr(0, end)));
        text_.erase(0, end + 1);
      }
    }
  }

  void TakeStatus(const Json& status) {
    if (!status.is_object()) return;
    if (status.contains("child-pid")) {
      first_ = static_cast<pid_t>(GetUint(status, "child-pid"));
      first_fd_ =
          UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, first_, 0)));
      if (on_begin_) on_begin_(first_);
    }
    if (status.contains("exit-code")) {
      code_ = static_cast<int>(GetUint(status, "exit-code"));
    }
  }

  const pid_t child_;
  const bool is_plain_;
  UniqueFd status_, signals_;
  Limits* limits_;  ///< null: none
  const std::function<void(pid_t)>& on_begin_;
  const std::vector<int> needed_;
  uint64_t deadline_;  ///< 0: none
  bool lost_ = false;
  bool ending_ = false, timed_out_ = false, interrupted_ = false;
  int stopped_by_ = 0;  ///< a signal that came before the command began
  int sent_ = 0;        ///< the last signal to the command
  std::optional<ExceededLimit> exceeded_;
  pid_t first_ = 0;  ///< pid 1 of the sandbox, as seen here
  UniqueFd first_fd_;
  std::optional<int> code_;
  std::string text_;
};

/// Brings the proxy to the stage, whose socket comes through `channel`. Returns
/// a descriptor of the process that does it.
Result<int> ConnectProxy(NetworkProxy& proxy, int channel) {
  auto frame = TRY(ReadFrame(channel, kRequestMax));
  if (!frame || !frame->descriptor) {
    return Fail(0, "no network namespace with a proxy can be made");
  }
  return proxy.StartRelay(std::move(*frame->descriptor));
}

std::string Joined(const std::vector<std::string>& words) {
  std::string bytes;
  for (const std::string& word : words) bytes.append(word).push_back('\0');
  return bytes;
}

/// The children of this process.
std::set<pid_t> Children() {
  const std::string self = std::to_string(::getpid());
  std::ifstream list("/proc/" + self + "/task/" + self + "/children");
  std::set<pid_t> children;
  for (pid_t pid = 0; list >> pid;) children.insert(pid);
  return children;
}

/// Kills what is below this process, until there is nothing but `spared`.
void KillDescendants(const std::set<pid_t>& spared) {
  for (;;) {
    bool any = false;
    for (const pid_t pid : Children()) {
      if (spared.contains(pid)) continue;
      any = true;
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
    if (!any) return;
  }
}

[[noreturn]] void RunCommand(
    std::vector<std::string> command, const std::string& directory,
    std::optional<std::vector<std::string>> environment,
    const BlockedSignals& signals, pid_t supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != supervisor) ::_exit(1);
  signals.Restore();
  ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
  const std::vector<char*> argv = Pointers(command);
  if (environment) {
    ::clearenv();
    for (std::string& variable : *environment) ::putenv(variable.data());
  }
  if (::chdir(directory.c_str()) == 0) ::execvp(argv[0], argv.data());
  const int code = errno;
  static_cast<void>(Report({.code = code,
                            .message = "cannot run " + command[0],
                            .hint = "",
                            .kind = ErrorKind::kFailed}));
  ::_exit(code == ENOENT ? 127 : 126);
}

}  // namespace

void DieBy(int signal) {
  ::fflush(nullptr);
  ::signal(signal, SIG_DFL);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
  ::raise(signal);
}

Result<UniqueFd> MemoryFile(std::string_view bytes) {
  UniqueFd fd(::memfd_create("txfs-run", MFD_CLOEXEC));
  if (!fd.valid()) return Fail(errno, "memfd_create");
  size_t at = 0;
  while (at < bytes.size()) {
    const ssize_t n = ::pwrite(fd.get(), bytes.data() + at, bytes.size() - at,
                               static_cast<off_t>(at));
    if (n < 0) return Fail(errno, "write to memory");
    at += static_cast<size_t>(n);
  }
  return fd;
}

pid_t ChildOf(pid_t process) {
  const std::string pid = std::to_string(process);
  const UniqueFd fd(
      ::open(("/proc/" + pid + "/task/" + pid + "/children").c_str(),
             O_RDONLY | O_CLOEXEC));
  std::array<char, 32> text{};
  if (!fd.valid() || ::read(fd.get(), text.data(), text.size() - 1) <= 0) {
    return 0;
  }
  return static_cast<pid_t>(std::strtol(text.data(), nullptr, 10));
}

Result<Ended> RunPlain(
    const std::vector<std::string>& command, const std::string& directory,
    const std::optional<std::vector<std::string>>& environment,
    const RunBounds& bounds, const std::function<void(pid_t)>& on_begin) {
  const Foreground foreground;
  const BlockedSignals signals;
  // What loses its parent becomes a child of this process, and is killed.
  const Subreaper subreaper;
  const std::set<pid_t> daemons = Children();
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "cannot start a process");
  if (pid == 0) {
    const Limits* limits = bounds.limits;
    if (limits != nullptr && !(limits->Enter() && limits->Restrict(false))) {
      SayNotLimited();
      ::_exit(126);
    }
    if (bounds.output_to_errors) ::dup2(STDERR_FILENO, STDOUT_FILENO);
    RunCommand(command, directory, environment, signals, supervisor);
  }
  if (on_begin) on_begin(pid);
  const Ended ended = Supervision(pid, {}, bounds, on_begin).Wait();
  KillDescendants(daemons);
  return ended;
}

namespace {

Result<Ended> RunOnce(const Sandbox& sandbox,
                      const std::vector<std::string>& command,
                      const RunBounds& bounds,
                      const std::function<void(pid_t)>& on_begin) {
  Start start;
  start.is_root = ::geteuid() == 0;
  start.limits = bounds.limits;
  start.may_nest = sandbox.may_nest;
  start.output_to_errors = bounds.output_to_errors;
  start.mapped = TRY(MakePipe());
  start.unshared = TRY(MakePipe());
  UniqueFd channel;
  if (sandbox.proxy != nullptr) {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) !=
        0) {
      return Fail(errno, "socketpair");
    }
    channel = UniqueFd(ends[0]);
    start.proxied = UniqueFd(ends[1]);
  }
  std::vector<UniqueFd> empty;
  const auto open_empty = [&] {
    empty.push_back(
        Raised(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC))));
    return empty.back().get();
  };
  const std::string words =
      Joined(BwrapArguments(sandbox, !start.is_root, open_empty));
  const std::string program = TRY(SandboxFilter(!sandbox.has_network));
  const UniqueFd arguments = Raised(TRY(MemoryFile(words)));
  const UniqueFd filter = Raised(TRY(MemoryFile(program)));
  const UniqueFd said = Raised(TRY(MemoryFile("")));
  Pipe status = TRY(MakePipe());
  Pipe begin = TRY(MakePipe());
  status.write = Raised(std::move(status.write));
  begin.read = Raised(std::move(begin.read));
  const UniqueFd held = Raised(
      UniqueFd(::fcntl(begin.read.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1)));
  struct stat st{};
  if (::fstat(held.get(), &st) != 0) return Fail(errno, "pipe");
  if (bounds.on_pipe) bounds.on_pipe(st.st_ino);
  ::fcntl(status.read.get(), F_SETFL, O_NONBLOCK);
  start.words = {kBwrap,
                 "--args",
                 std::to_string(arguments.get()),
                 "--seccomp",
                 std::to_string(filter.get()),
                 "--json-status-fd",
                 std::to_string(status.write.get()),
                 "--block-fd",
                 std::to_string(begin.read.get()),
                 "--sync-fd",
                 std::to_string(held.get()),
                 "--",
                 "/bin/sh",
                 "-c",
                 kTakeErrors,
                 "sh"};
  start.reset = GroupSignals();
  if (!start.reset.empty()) {
    // An ignored signal stays ignored in what is executed.
    start.words.emplace_back("env");
    for (const int signal : start.reset) {
      start.words.push_back("--default-signal=" + std::to_string(signal));
    }
    start.words.emplace_back("--");
  }
  std::ranges::copy(command, std::back_inserter(start.words));
  start.kept = {arguments.get(),  filter.get(), status.write.get(),
                begin.read.get(), held.get(),   kErrors};
  for (const UniqueFd& fd : empty) start.kept.push_back(fd.get());
  start.errors = said.get();
  const Feeder feeder = TRY(Feeder::Start());
  start.input = feeder.input();

  const Foreground foreground;
  const BlockedSignals signals;
  const Subreaper subreaper;
  const std::set<pid_t> others = Children();
  const pid_t supervisor = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "cannot start a process");
  if (pid == 0) RunStage(start, signals, supervisor);
  status.write.Reset();
  start.unshared.write.Reset();
  if (start.is_root) std::ignore = MapAllIds(pid, start);
  start.mapped.write.Reset();
  start.proxied.Reset();
  RunBounds all = bounds;
  std::string no_proxy;
  if (sandbox.proxy != nullptr) {
    const auto relay = ConnectProxy(*sandbox.proxy, channel.get());
    if (relay) {
      all.needed.push_back(*relay);
    } else {
      no_proxy = relay.error().ToString();
      ::kill(pid, SIGKILL);
    }
  }
  // bwrap waits for a byte before it starts the command.
  const auto begun = [&](pid_t first) {
    if (on_begin) on_begin(first);
    const char byte = 1;
    std::ignore = ::write(begin.write.get(), &byte, 1);
  };
  Ended ended = Supervision(pid, std::move(status.read), all, begun).Wait();
  ended.said = no_proxy.empty() ? ReadMemory(said.get()) : no_proxy;
  if (sandbox.proxy != nullptr) sandbox.proxy->StopRelay();
  // A bwrap that was killed while it started pid 1 leaves that waiting forever.
  KillDescendants(others);
  return ended;
}

/// Whether bwrap failed because somebody removed the directory of a mount, and
/// with it the mount in each namespace, while it looked at all mounts.
bool LostAMount(const Ended& ended) {
  return ended.why == Ended::Why::kNotBegun && ended.said.contains("remount") &&
         // Its directory is gone, or is found without the mount.
         (ended.said.contains("No such file or directory") ||
          ended.said.contains("Invalid argument"));
}

}  // namespace

Result<Ended> RunSandboxed(const Sandbox& sandbox,
                           const std::vector<std::string>& command,
                           const RunBounds& bounds,
                           const std::function<void(pid_t)>& on_begin) {
  constexpr int kAttempts = 10;
  for (int attempt = 1;; ++attempt) {
    auto ended = RunOnce(sandbox, command, bounds, on_begin);
    if (!ended || !LostAMount(*ended) || attempt == kAttempts) return ended;
  }
}

}  // namespace txfs::cli

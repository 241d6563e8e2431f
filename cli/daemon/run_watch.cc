#include "cli/daemon/run_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <utility>

#include "cli/daemon/limit_signal.h"
#include "cli/daemon/log.h"
#include "cli/daemon/pipe_holders.h"
#include "cli/daemon/run_groups.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/wire.h"
#include "journal/change.h"
#include "journal/denials.h"
#include "journal/savepoint.h"
#include "journal/support/thread.h"

namespace txfs::cli {
namespace {

constexpr const char* kBegin = "run_begin";
constexpr const char* kStart = "run_start";
constexpr const char* kSettle = "run_settle";
constexpr const char* kEnd = "run_end";

/// Of what txfs itself is the reason for.
constexpr uint32_t kOwnFailureCode = 125;

UniqueFd OpenProcess(pid_t pid) {
  return UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

/// Waits until one of `fds` is ready; returns whether it is the first one.
bool AwaitFirst(int first, int second) {
  std::array<pollfd, 2> fds = {pollfd{first, POLLIN, 0},
                               pollfd{second, POLLIN, 0}};
  while (::poll(fds.data(), fds.size(), -1) < 0 && errno == EINTR) {
  }
  return fds[1].revents == 0;
}

bool IsFresh(const WorkspaceStatus& transaction) {
  return transaction.changes == 0 && transaction.savepoints.empty();
}

/// The newest savepoint if the last operation made it or returned to it: runs
/// that fail one after the other need one savepoint.
Result<std::optional<Savepoint>> SavepointHere(Workspace& workspace,
                                               const WorkspaceStatus& now) {
  if (now.savepoints.empty()) return std::nullopt;
  const Savepoint& newest = now.savepoints.back();
  bool is_here = false;
  TRY(workspace.ReadLog(Lsn{now.operations}, [&](const LogEntry& entry) {
    is_here =
        entry.lsn == newest.lsn || (entry.change.op == Op::kRollback &&
                                    Lsn{entry.change.offset} == newest.lsn);
    return false;
  }));
  if (!is_here) return std::nullopt;
  return newest;
}

void LogIfFailed(const Status& status) {
  if (status) return;
  LogError("roll back a run: " + EscapeControls(status.error().ToString()));
}

}  // namespace

RunWatch::~RunWatch() { End(); }

Status RunWatch::CheckFree(const Json& request, pid_t peer) {
  const std::string name = GetBytes(request, "request");
  const bool ends = name == "commit" || name == "discard" ||
                    name == "rollback" || name == "revert" ||
                    name == "unmount" || name == kStart || name == kSettle ||
                    name == kEnd;
  const pid_t holder = holder_;
  if (!ends || holder == 0 || holder == peer) return {};
  const std::string pid = std::to_string(holder);
  std::string run = "`txfs run` works in this mount (pid " + pid + "):";
  const MutexLock lock(mutex_);
  for (const std::string& word : record_.command) run += " " + QuoteShell(word);
  return Fail(ErrorKind::kBusy, 0, std::move(run),
              "wait until it ends, or end it with `kill " + pid + "`");
}

Json RunWatch::WithEarlier(Json request, pid_t peer) {
  const bool commits =
      GetBytes(request, "request") == "commit" && holder_ == peer && peer != 0;
  if (!commits) return request;
  const MutexLock lock(mutex_);
  request["except"] = EncodeList(earlier_);
  return request;
}

bool RunWatch::IsAsked(const Json& request) {
  const std::string name = GetBytes(request, "request");
  return name == kBegin || name == kStart || name == kSettle || name == kEnd;
}

Status RunWatch::Handle(const Json& request, const FrameSink& sink,
                        pid_t peer) {
  const std::string name = GetBytes(request, "request");
  const auto answer = [&](const FrameSink& checked) -> Status {
    Frame frame;
    if (name == kBegin) frame = TRY(Begin(request, peer));
    if (name == kStart) TRY(Start(request));
    if (name == kSettle) TRY(Settle(request));
    if (name == kEnd) End();
    return checked(frame);
  };
  return AnswerWith(answer, sink);
}

void RunWatch::Expect(pid_t supervisor) {
  const MutexLock lock(mutex_);
  // Another run may have begun since; it has its own watch.
  if (active_) return;
  // A thread that has ended by itself.
  if (thread_.joinable()) thread_.join();
  expected_ = supervisor;
  owns_mount_ = true;
  // One that died before this is not there.
  supervisor_ = OpenProcess(supervisor);
  stop_ = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  active_ = true;
  StartWatch();
}

void RunWatch::StartWatch() {
  thread_ = StartThread([this, watched = supervisor_.get(),
                         until = stop_.get()] { Watch(watched, until); });
}

bool RunWatch::IsExpecting() const {
  const MutexLock lock(mutex_);
  return expected_ != 0;
}

bool RunWatch::TakeExpected(pid_t peer) {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    if (!IsExpected(peer)) return false;
    // In one step: RollBack takes a run that is not expected for a begun one.
    expected_ = 0;
    thread = StopWatch();
  }
  if (thread.joinable()) thread.join();
  return true;
}

bool RunWatch::IsExpected(pid_t peer) const {
  // Once the watch has seen the death of the supervisor, it unmounts.
  return active_ && expected_ != 0 && expected_ == peer;
}

Status RunWatch::CheckNobodyRuns(pid_t peer) const {
  // The run of a dead supervisor is there until it is rolled back.
  const bool is_free = expected_ == 0 && !active_ && holder_ == 0;
  if (is_free || IsExpected(peer)) return {};
  return Fail(ErrorKind::kBusy, 0, "another run works in this mount",
              "wait for it to end");
}

Result<Frame> RunWatch::Begin(const Json& request, pid_t peer) {
  {
    const MutexLock lock(mutex_);
    TRY(CheckNobodyRuns(peer));
  }
  // While the watch that unmounts for an expected run is still there.
  if (GetBool(request, "clean") && TRY(workspace_.GetStatus()).changes != 0) {
    return Fail(ErrorKind::kUsage, 0,
                "the validators would see changes from before the run, which "
                "its commit leaves out",
                "commit or discard these, or run in a new transaction with "
                "--name NAME");
  }
  const bool was_expected = TakeExpected(peer);
  auto begun = BeginWatched(request, peer);
  // The supervisor may be dead already, or give up.
  if (!begun && was_expected) Expect(peer);
  return begun;
}

Result<Frame> RunWatch::BeginWatched(const Json& request, pid_t peer) {
  const MutexLock lock(mutex_);
  TRY(CheckNobodyRuns(peer));
  if (peer == 0) {
    return Fail(0, "the daemon cannot see the process of the run",
                "start the run in the pid namespace of the daemon");
  }
  UniqueFd supervisor = OpenProcess(peer);
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!supervisor.valid() || !stop.valid()) {
    return Fail(errno, "cannot watch the process of the run");
  }
  const RunLimits limits =
      RunLimits::Of(GetUint(request, "disk"), GetUint(request, "files"));
  Frame reply;
  if (limits.any()) reply.descriptor = TRY(MakeLimitSignal());
  const WorkspaceStatus before = TRY(workspace_.GetStatus());
  const bool fresh = IsFresh(before);
  // A discard takes it all back.
  Savepoint begin;
  if (!fresh) {
    const auto here = TRY(SavepointHere(workspace_, before));
    begin =
        here ? *here : TRY(workspace_.MakeSavepoint(GetBytes(request, "id")));
  }
  earlier_.clear();
  if (before.changes != 0) {
    for (const NetChange& change : TRY(workspace_.Changes(true))) {
      earlier_.push_back(change.path);
      if (!change.old_path.empty()) earlier_.push_back(change.old_path);
    }
  }
  // A thread that has ended by itself.
  if (thread_.joinable()) thread_.join();
  supervisor_ = std::move(supervisor);
  stop_ = std::move(stop);
  sandbox_.Reset();
  groups_.clear();
  socket_.clear();
  pipe_ = 0;
  savepoint_ = begin.name;
  record_ = Bounded({.id = GetBytes(request, "id"),
                     .command = DecodeList(GetMember(request, "command")),
                     .profile = GetBytes(request, "profile"),
                     .begin = Clock::System().Now()});
  begun_ms_ = Clock::System().Steady();
  workspace_.BeginRun(record_);
  workspace_.LimitRun(limits, [signal = reply.descriptor](RunLimit limit) {
    RaiseLimitSignal(signal->get(), limit);
  });
  owns_mount_ = GetBool(request, "own");
  fresh_ = fresh;
  active_ = true;
  holder_ = peer;
  StartWatch();
  reply.header = {{"savepoint", EncodeBytes(begin.name)},
                  {"changes", before.changes},
                  {"fresh", fresh_}};
  return reply;
}

Status RunWatch::Start(const Json& request) {
  const MutexLock lock(mutex_);
  if (!active_) return Fail(0, "no run works in this mount");
  if (request.contains("groups")) {
    groups_ = DecodeList(GetMember(request, "groups"));
  }
  if (request.contains("socket")) socket_ = GetBytes(request, "socket");
  if (request.contains("pipe")) {
    pipe_ = GetUint(request, "pipe");
    // The next sandbox has no process yet.
    sandbox_.Reset();
  }
  const auto pid = static_cast<pid_t>(GetUint(request, "pid"));
  if (pid > 0) sandbox_ = OpenProcess(pid);
  return {};
}

Status RunWatch::Settle(const Json& request) {
  RunRecord record;
  {
    const MutexLock lock(mutex_);
    if (!active_) return Fail(0, "no run works in this mount");
    record_.outcome = OutcomeFromName(GetBytes(request, "outcome"));
    record_.why = GetBytes(request, "why");
    record_.code = static_cast<uint32_t>(GetUint(request, "code"));
    record_.milliseconds = Clock::System().Steady() - begun_ms_;
    record = record_;
  }
  if (GetBool(request, "done")) {
    workspace_.EndRun(record);
  } else {
    workspace_.SettleRun(record);
  }
  return {};
}

void RunWatch::End() {
  std::thread thread;
  {
    const MutexLock lock(mutex_);
    thread = StopWatch();
  }
  if (thread.joinable()) thread.join();
}

std::thread RunWatch::StopWatch() {
  if (std::exchange(active_, false)) {
    const uint64_t one = 1;
    std::ignore = ::write(stop_.get(), &one, sizeof one);
    workspace_.LimitRun({}, {});
    holder_ = 0;
  }
  return std::move(thread_);
}

void RunWatch::Watch(int supervisor, int stop) {
  // One that had died before has no descriptor.
  if (supervisor < 0 || AwaitFirst(supervisor, stop)) RollBack();
}

void RunWatch::RollBack() {
  std::string savepoint, socket;
  RunRecord record;
  bool owns_mount = false, fresh = false, begun = false;
  UniqueFd sandbox;
  uint64_t pipe = 0;
  std::vector<std::string> groups;
  {
    const MutexLock lock(mutex_);
    if (!std::exchange(active_, false)) return;
    begun = expected_ == 0;
    savepoint = savepoint_;
    owns_mount = owns_mount_;
    fresh = fresh_;
    sandbox = std::move(sandbox_);
    pipe = pipe_;
    groups = std::move(groups_);
    socket = std::move(socket_);
    record = record_;
    record.outcome = RunOutcome::kRolledBack;
    record.why = "the process of txfs run died";
    record.code = kOwnFailureCode;
    record.milliseconds = Clock::System().Steady() - begun_ms_;
  }
  // The kernel ends the sandbox, too; nothing may be written after the
  // rollback, so this waits for the last of its processes.
  if (sandbox.valid()) {
    ::syscall(SYS_pidfd_send_signal, sandbox.get(), SIGKILL, nullptr, 0);
    AwaitFirst(sandbox.get(), -1);
  } else if (pipe != 0) {
    EndHoldersOfPipe(pipe);
  }
  for (const std::string& group : groups) RemoveRunGroup(group);
  if (!socket.empty()) ::unlink(socket.c_str());
  workspace_.LimitRun({}, {});
  LogWarning("the process of a run died: rolling the run back");
  if (begun) LogIfFailed(TakeBack(record, savepoint, fresh));
  holder_ = 0;
  if (owns_mount) unmount_();
}

Status RunWatch::TakeBack(const RunRecord& record, const std::string& savepoint,
                          bool fresh) {
  workspace_.SettleRun(record);
  if (fresh) {
    TRY(workspace_.Discard());
  } else {
    TRY(workspace_.Rollback(savepoint));
  }
  workspace_.EndRun(record);
  return {};
}

}  // namespace txfs::cli

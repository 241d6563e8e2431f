#include "cli/daemon/daemon.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <ranges>
#include <utility>
#include <vector>

#include "cli/daemon/agent_files.h"
#include "cli/daemon/approvals.h"
#include "cli/daemon/control_server.h"
#include "cli/daemon/live_policy.h"
#include "cli/daemon/log.h"
#include "cli/daemon/run_watch.h"
#include "cli/locate/reach.h"
#include "cli/locate/transactions.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/dispatcher.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/protocol/wire.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"
#include "journal/support/memory.h"
#include "journal/support/mutex.h"

namespace txfs::cli {
namespace {

uint64_t LogSize(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 ? static_cast<uint64_t>(st.st_size) : 0;
}

/// Removes the logs of daemons that are gone, but for the newest and that of
/// `own`. One that runs has a socket of the same name.
void RemoveOldLogs(const std::string& own) {
  constexpr size_t kKept = 8;
  const size_t slash = own.rfind('/');
  const std::string directory = own.substr(0, slash);
  const auto stem = [](std::string_view name) {
    return name.substr(0, name.find('.'));
  };
  const auto runs = [&](const std::string& name) {
    return std::ranges::any_of(
        RuntimeDirectories(::geteuid()), [&](const std::string& runtime) {
          const std::string socket =
              runtime + "/" + std::string(stem(name)) + ".sock";
          return ::access(socket.c_str(), F_OK) == 0;
        });
  };
  const auto names = ListNames(AT_FDCWD, directory);
  if (!names) return;
  std::vector<std::pair<time_t, std::string>> old;
  for (const std::string& name : *names) {
    const std::string path = directory + "/" + name;
    struct stat st{};
    if (!name.ends_with(".log") || stem(name) == stem(own.substr(slash + 1)) ||
        runs(name) || ::lstat(path.c_str(), &st) != 0) {
      continue;
    }
    old.emplace_back(st.st_mtim.tv_sec, path);
  }
  std::ranges::sort(old, std::greater());
  for (const auto& [time, path] : old | std::views::drop(kKept)) {
    ::unlink(path.c_str());
  }
}

void LogFailure(const char* what, const Status& status) {
  if (status) return;
  LogError(std::string(what) + ": " +
           EscapeControls(status.error().ToString()));
}

/// Ends a transaction in which nothing was done, and which nobody will miss:
/// the run for which it was made never began.
void DropUnused(Workspace& workspace) {
  LogFailure("drop the transaction of a run", [&]() -> Status {
    const WorkspaceStatus status = TRY(workspace.GetStatus());
    if (status.changes != 0 || !status.savepoints.empty()) return {};
    TRY(workspace.Discard());
    return {};
  }());
}

/// How long the kernel may take to end a mount that nobody has any more.
constexpr int kDisconnectMs = 1000;

/// A mounted workspace with its control socket.
class Server {
 public:
  Server(Workspace& workspace, FuseSession& session, std::string mountpoint,
         LivePolicy& policy, Approvals& approvals)
      : workspace_(workspace),
        session_(session),
        policy_(policy),
        approvals_(approvals),
        runs_(workspace,
              [&session, mountpoint] {
                LogFailure("unmount after a run", session.Unmount(true));
                ::rmdir(mountpoint.c_str());
                session.Stop();
              }),
        dispatcher_(workspace,
                    {.pid = static_cast<uint32_t>(::getpid()),
                     .mountpoint = std::move(mountpoint),
                     .announce = [this] { WriteRecord(/*again=*/false); },
                     .tell_siblings = RefreshSiblings}) {}

  /// Answers a request; the mount's own, its rules and the record of who serves
  /// are not the dispatcher's business.
  Status Handle(const Json& request, const FrameSink& sink, pid_t peer) {
    if (const Status free = runs_.CheckFree(request, peer); !free) {
      return AnswerWith([&](const FrameSink&) { return free; }, sink);
    }
    if (const Status may = approvals_.CheckAccepts(request, peer); !may) {
      return AnswerWith([&](const FrameSink&) { return may; }, sink);
    }
    if (GetBytes(request, "request") == "unmount") {
      // The supervisor of a run has settled it.
      if (GetBool(request, "stop")) runs_.End();
      TRY(Unmount(GetBool(request, "lazy"), sink));
      // Without those that still have the mount, in other namespaces.
      if (GetBool(request, "stop")) session_.Stop();
      return {};
    }
    if (GetBytes(request, "request") == "requests") {
      Frame reply;
      reply.header["requests"] = session_.requests();
      return sink(reply);
    }
    if (LivePolicy::IsAsked(request)) return policy_.Handle(request, sink);
    if (RunWatch::IsAsked(request)) return runs_.Handle(request, sink, peer);
    if (Approvals::IsAsked(request)) {
      return approvals_.Handle(request, sink, peer);
    }
    const Json asked = runs_.WithEarlier(request, peer);
    const Status handled = dispatcher_.Handle(asked, [&](const Frame& frame) {
      // Who has the reply may look for the daemon of the next transaction.
      WriteRecord(/*again=*/false);
      return sink(frame);
    });
    WriteRecord(/*again=*/true);
    return handled;
  }

  void ExpectRun(pid_t supervisor) { runs_.Expect(supervisor); }
  [[nodiscard]] bool IsExpectingRun() const { return runs_.IsExpecting(); }

  void SetRecord(Json record) {
    {
      const MutexLock lock(mutex_);
      record_ = std::move(record);
    }
    WriteRecord(/*again=*/true);
    // Nobody could tell us until then.
    std::ignore = workspace_.CatchUp();
  }

 private:
  Status Unmount(bool lazy, const FrameSink& sink) {
    Frame reply;
    const Status unmounted = session_.Unmount(lazy);
    if (!unmounted) {
      reply.header["error"] = ToJson(unmounted.error());
      return sink(reply);
    }
    // Nobody finds the mount any more to answer what waits in it.
    if (lazy) approvals_.End();
    if (!lazy) {
      reply.header["serving"] = !session_.AwaitDisconnect(kDisconnectMs);
    }
    const Store& store = workspace_.store();
    reply.header["transaction"] = workspace_.transaction_id();
    reply.header["workspace"] = EncodeBytes(workspace_.path());
    reply.header["store"] = EncodeBytes(store.display_path());
    // Without it nobody learns what becomes of the transaction; it is unmounted
    // all the same.
    auto directory = OpenAt(store.dir(), ".", O_RDONLY | O_DIRECTORY);
    if (directory) {
      reply.descriptor = std::make_shared<UniqueFd>(std::move(*directory));
    }
    return sink(reply);
  }

  /// Says in the transaction, once, who serves it. Until that could be written
  /// others take the transaction for one that nobody serves, and do not tell us
  /// what they do to the base; so it is written before they are told of what we
  /// did, and every request tries it again.
  void WriteRecord(bool again) {
    const MutexLock lock(mutex_);
    std::string id = workspace_.transaction_id();
    if (id == recorded_ || (id == tried_ && !again)) return;
    tried_ = id;
    const Status written =
        workspace_.store().WriteDaemonRecord(id, Dump(record_));
    LogFailure("daemon record", written);
    if (written) recorded_ = std::move(id);
  }

  Workspace& workspace_;
  FuseSession& session_;
  LivePolicy& policy_;
  Approvals& approvals_;
  RunWatch runs_;
  Dispatcher dispatcher_;
  Mutex mutex_;
  Json record_ GUARDED_BY(mutex_);
  std::string recorded_ GUARDED_BY(mutex_);  ///< transaction
  std::string tried_ GUARDED_BY(mutex_);     ///< the same, perhaps in vain
};

/// Runs the session and ends it, whatever made it end.
Status RunSession(Workspace& workspace, FuseSession& session,
                  LivePolicy& policy, Approvals& approvals,
                  const DaemonOptions& options,
                  const std::function<void()>& on_ready) {
  const std::string& mountpoint = options.mount.mountpoint;
  Server server(workspace, session, mountpoint, policy, approvals);
  std::atomic<bool> signalled = false;
  std::vector<std::string> sockets = TRY(MakeRuntimeDirectories());
  for (std::string& path : sockets) path += "/" + SocketName(mountpoint);
  const std::unique_ptr<ControlServer> control = TRY(ControlServer::Listen(
      sockets, {{"device", session.device()}},
      [&](const Json& request, const FrameSink& sink, pid_t peer) {
        return server.Handle(request, sink, peer);
      },
      [&] {
        signalled = true;
        session.Stop();
      }));
  DaemonRecord record{.pid = static_cast<uint32_t>(::getpid()),
                      .mountpoint = mountpoint,
                      .sockets = {}};
  for (const ControlServer::Socket& socket : control->sockets()) {
    record.sockets.push_back({.path = socket.path, .stamp = socket.stamp});
  }
  server.SetRecord(ToJson(record));
  if (options.supervisor != 0) server.ExpectRun(options.supervisor);
  workspace.OnStaleCaches([&](const StaleCaches& stale) {
    if (stale.empty()) return;
    // The kernel takes locks that operations which wait have there.
    const Approvals::Pause pause(approvals);
    session.Invalidate(stale);
  });
  workspace.OnPathEvents([&](const std::vector<PathEvent>& events) {
    const Approvals::Pause pause(approvals);
    session.Announce(events);
  });
  const bool log_is_new = LogSize(options.log_path) == 0;
  LogInfo("serving " + EscapeControls(workspace.path()) + " at " +
          EscapeControls(mountpoint));
  const uint64_t logged = LogSize(options.log_path);
  on_ready();
  const Status run = session.Run();
  LogFailure("session", run);
  // After a signal the mount is still there, perhaps in use. Otherwise it is
  // gone, and what is at the mountpoint now is not ours.
  if (signalled) LogFailure("unmount", session.Unmount(true));
  control->Stop();
  workspace.OnStaleCaches({});
  workspace.OnPathEvents({});
  LogFailure("daemon record",
             workspace.store().RemoveDaemonRecord(workspace.transaction_id()));
  // Inside the control server's lifetime: the requester of an unmount sees its
  // connection end when all is durable.
  if (server.IsExpectingRun()) DropUnused(workspace);
  LogFailure("follow", workspace.KeepFollowed());
  const Status closed = workspace.Close();
  LogFailure("close", closed);
  if (log_is_new && LogSize(options.log_path) == logged) {
    ::unlink(options.log_path.c_str());  // nothing happened
  } else {
    LogInfo("ended");
  }
  TRY(run);
  return closed;
}

void BlockSignals() {
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
}

/// Only `keep` stays of the caller's descriptors: a daemon that holds a pipe of
/// the program that started it keeps that waiting. Returns its new number.
int DropDescriptors(UniqueFd keep, const std::string& log_path) {
  constexpr int kKept = 3;
  if (keep.get() != kKept) {
    ::dup3(keep.get(), kKept, O_CLOEXEC);
  } else {
    static_cast<void>(keep.Release());
  }
  ::close_range(kKept + 1, ~0U, 0);
  // close_range took it.
  if (keep.valid()) static_cast<void>(keep.Release());
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  const int log =
      ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  ::dup2(null, STDIN_FILENO);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(log >= 0 ? log : null, STDERR_FILENO);
  ::close_range(kKept + 1, ~0U, 0);
  return kKept;
}

void SendReport(int fd, const Json& report) {
  const std::string text = Dump(report);
  const Status written = [&]() -> Status {
    std::string_view rest = text;
    while (!rest.empty()) {
      const ssize_t n = ::write(fd, rest.data(), rest.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return Fail(errno, "report to the parent");
      rest.remove_prefix(static_cast<size_t>(n));
    }
    return {};
  }();
  LogFailure("start", written);
}

[[noreturn]] void RunChild(const DaemonOptions& options, UniqueFd report_pipe) {
  ::setsid();
  UniqueFd report(DropDescriptors(std::move(report_pipe), options.log_path));
  const Status served = Serve(options, [&](const ReadyReport& ready) {
    SendReport(report.get(), {{"transaction", ready.transaction},
                              {"workspace", EncodeBytes(ready.workspace)},
                              {"begun", ready.begun},
                              {"finished", ready.finished}});
    report.Reset();
  });
  if (!served && report.valid()) {
    SendReport(report.get(), {{"error", ToJson(served.error())}});
  }
  CloseLog();
  ::_exit(served ? 0 : 1);
}

Result<std::string> ReadPipe(int fd) {
  std::string text;
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "read from the daemon");
    if (n == 0) return text;
    text.append(piece.data(), static_cast<size_t>(n));
  }
}

}  // namespace

std::string LogPath(const std::string& mountpoint) {
  return StateDirectory() + "/log/" + HashName(mountpoint) + ".log";
}

Status Serve(const DaemonOptions& options,
             const std::function<void(const ReadyReport&)>& on_ready) {
  ShareArenas();
  BlockSignals();
  KeepMountTable(false);
  RemoveDeadSockets();
  RemoveOldLogs(options.log_path);
  OpenLog(options.log_path);
  // It must not stand in what it serves, and modes are the callers' business.
  if (::chdir("/") != 0) return Fail(errno, "chdir /");
  ::umask(0);
  const Timestamp start = Clock::System().Now();
  // Here and not in the parent, whose descriptors are gone.
  WorkspaceOptions workspace_options = options.workspace;
  const RealWorkspace real = TRY(ReachWorkspace(workspace_options.path));
  if (!real.record) {
    return Fail(0, "the record of " + real.path + " is gone",
                "another process removed it during the mount: try again");
  }
  workspace_options.base = real.base;
  workspace_options.store = real.record->store;
  UniqueFd store = TRY(OpenRecordedStore(*real.record));
  workspace_options.store_directory =
      std::make_shared<UniqueFd>(std::move(store));
  workspace_options.prepares = true;
  workspace_options.sums = true;
  std::unique_ptr<Workspace> workspace;
  Approvals approvals(options.mount.mountpoint, workspace_options.path,
                      [&] { return workspace->transaction_id(); });
  workspace_options.filesystem.approver = &approvals;
  workspace = TRY(Workspace::Open(workspace_options));
  const std::string finished = TRY(
      RollForward(*workspace, workspace->transaction_id(), RefreshSiblings));
  const std::string transaction = workspace->transaction_id();
  const bool begun = workspace->created() >= start;
  LivePolicy policy(*workspace, approvals,
                    {.workspace = workspace_options.path,
                     .mountpoint = options.mount.mountpoint},
                    options.policy);
  SyntheticDirectory filesystem(workspace->filesystem(), kAgentDirectory,
                                AgentFiles(*workspace, policy));
  MountOptions mount = options.mount;
  mount.on_end = [&] { approvals.End(); };
  auto mounted = FuseSession::Mount(filesystem, mount);
  const auto drop_unused = [&] {
    if (options.supervisor == 0) return;
    DropUnused(*workspace);
    LogFailure("close", workspace->Close());
  };
  if (!mounted) {
    drop_unused();
    return std::unexpected(std::move(mounted).error());
  }
  const std::unique_ptr<FuseSession> session = *std::move(mounted);
  bool ready = false;
  const Status ran =
      RunSession(*workspace, *session, policy, approvals, options, [&] {
        ready = true;
        on_ready({.transaction = transaction,
                  .workspace = workspace_options.path,
                  .begun = begun,
                  .finished = finished});
      });
  // What failed before anybody was served leaves no mount behind; the reason
  // is the error to tell.
  if (!ready) {
    LogFailure("unmount", session->Unmount(true));
    drop_unused();
  }
  return ran;
}

Result<ReadyReport> SpawnDaemon(const DaemonOptions& options) {
  TRY(MakeDirectories(StateDirectory() + "/log"));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "cannot start the daemon");
  if (pid == 0) RunChild(options, std::move(write_end));
  write_end.Reset();
  const Json report = ParseBounded(TRY(ReadPipe(read_end.get())));
  const Json& error = GetMember(report, "error");
  if (error.is_object()) return std::unexpected(ErrorFromJson(error));
  if (!report.is_object()) {
    return Fail(0, "the daemon died while it started",
                "its log is " + options.log_path);
  }
  return ReadyReport{.transaction = GetBytes(report, "transaction"),
                     .workspace = GetBytes(report, "workspace"),
                     .begun = GetBool(report, "begun"),
                     .finished = GetBytes(report, "finished")};
}

}  // namespace txfs::cli

#include "cli/run/home_mount.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <tuple>

#include "cli/daemon/limit_signal.h"
#include "cli/daemon/log.h"
#include "cli/output/paths.h"
#include "cli/protocol/framing.h"
#include "cli/protocol/wire.h"
#include "fs/fuse/fuse_mount.h"
#include "fs/fuse/fuse_session.h"
#include "fs/workspace/workspace.h"
#include "journal/support/file.h"
#include "journal/support/io.h"
#include "journal/support/memory.h"

namespace txfs::cli {
namespace {

/// The first column of the mount table: no path, so that no command takes it
/// for the mount of a workspace.
constexpr std::string_view kSource = "txfs-home:";

struct HomePaths {
  std::string home, mountpoint, store;
};

/// Descriptors of the daemon.
constexpr int kChannel = 3;
constexpr int kLimitSignal = 4;

bool IsWithinAny(const std::string& path,
                 const std::vector<std::string>& above) {
  return std::ranges::any_of(
      above, [&](const auto& each) { return IsWithin(path, each); });
}

/// Commits what is kept.
Result<HomeChanges> Keep(Workspace& workspace, const CommitOptions& kept) {
  HomeChanges result;
  const std::vector<NetChange> before = TRY(workspace.Changes(false));
  std::set<std::string> left;
  for (const NetChange& change : before) left.insert(change.path);
  const bool any = std::ranges::any_of(before, [&](const NetChange& change) {
    return IsWithinAny(change.path, kept.paths);
  });
  if (any) {
    const auto committed = workspace.Commit(kept);
    if (!committed) {
      result.problem = committed.error().ToString();
    } else if (!committed->conflicts.empty()) {
      result.problem = "another program changed " +
                       committed->conflicts.front().path + " meanwhile";
    } else {
      left.clear();
      for (const NetChange& change : TRY(workspace.Changes(false))) {
        left.insert(change.path);
      }
    }
  }
  for (const NetChange& change : before) {
    const bool is_left = left.contains(change.path);
    (is_left ? result.not_kept : result.kept).push_back(change.path);
    const bool is_held = is_left && result.problem.empty() &&
                         IsWithinAny(change.path, kept.paths) &&
                         !IsWithinAny(change.path, kept.except);
    if (is_held) result.held.push_back(change.path);
  }
  return result;
}

/// Waits for the request of the supervisor, or for its death.
void ServeChannel(int channel, Workspace& workspace, FuseSession& session) {
  const auto request = ReadFrame(channel, kRequestMax);
  if (request && *request) {
    const Json& header = (*request)->header;
    CommitOptions kept;
    kept.message = "txfs run";
    kept.paths = DecodeList(GetMember(header, "keep"));
    kept.except = DecodeList(GetMember(header, "except"));
    kept.within = true;
    auto changes = Keep(workspace, kept);
    if (!changes) {
      changes = HomeChanges{.kept = {},
                            .not_kept = {},
                            .held = {},
                            .problem = changes.error().ToString()};
    }
    Frame reply;
    reply.header = {{"kept", EncodeList(changes->kept)},
                    {"not_kept", EncodeList(changes->not_kept)},
                    {"held", EncodeList(changes->held)},
                    {"problem", EncodeBytes(changes->problem)}};
    std::ignore = WriteFrame(channel, reply);
  }
  std::ignore = session.Unmount(true);
  session.Stop();
}

void Remove(const HomePaths& paths) {
  std::ignore = RemoveTree(AT_FDCWD, paths.store);
  ::rmdir(paths.mountpoint.c_str());
}

/// Returns only an error from before it served anything.
Status ServeHome(const HomePaths& paths, const RunLimits& limits) {
  WorkspaceOptions options;
  options.path = paths.home;
  options.base = std::make_shared<UniqueFd>(
      TRY(OpenAt(AT_FDCWD, paths.home, O_RDONLY | O_DIRECTORY)));
  options.store = paths.store;
  options.collects = false;
  const std::unique_ptr<Workspace> workspace = TRY(Workspace::Open(options));
  workspace->LimitRun(
      limits, [](RunLimit limit) { RaiseLimitSignal(kLimitSignal, limit); });
  const std::unique_ptr<FuseSession> session = TRY(FuseSession::Mount(
      workspace->filesystem(), {.mountpoint = paths.mountpoint,
                                .source = std::string(kSource) + paths.home}));
  TRY(WriteFrame(kChannel, {}));
  std::thread waiting([&] { ServeChannel(kChannel, *workspace, *session); });
  const Status ran = session->Run();
  ::shutdown(kChannel, SHUT_RD);
  waiting.join();
  // Without draining the journal first.
  Remove(paths);
  std::ignore = WriteFrame(kChannel, {});
  ::_exit(ran ? 0 : 1);
}

/// `limit_signal`: from MakeLimitSignal; -1: there are no limits.
[[noreturn]] void RunHomeDaemon(const HomePaths& paths, const RunLimits& limits,
                                int channel, int limit_signal) {
  ::setsid();
  // Where neither overwrites the other.
  const int from = ::fcntl(channel, F_DUPFD_CLOEXEC, kLimitSignal + 1);
  const int other = ::fcntl(limit_signal, F_DUPFD_CLOEXEC, kLimitSignal + 1);
  ::dup3(from, kChannel, O_CLOEXEC);
  ::close(kLimitSignal);
  if (other >= 0) ::dup3(other, kLimitSignal, O_CLOEXEC);
  ::close_range(kLimitSignal + 1, ~0U, 0);
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(null, fd);
  }
  ::close(null);
  for (const int signal : {SIGPIPE, SIGINT, SIGHUP, SIGTERM, SIGQUIT}) {
    ::signal(signal, SIG_IGN);
  }
  // The store goes with the run.
  MakeStoresVolatile();
  ShareArenas();
  if (::chdir("/") != 0) ::_exit(1);
  ::umask(0);
  OpenNoLog();
  const Status served = ServeHome(paths, limits);
  if (!served) {
    Frame frame;
    frame.header["error"] = ToJson(served.error());
    std::ignore = WriteFrame(kChannel, frame);
  }
  Remove(paths);
  ::_exit(1);
}

/// The next message of the daemon.
Result<Frame> Receive(int channel) {
  auto frame = TRY(ReadFrame(channel, kReplyMax));
  if (!frame) {
    return Fail(0, "the process that serves the home of the run has died",
                "its changes to the home are lost");
  }
  const Json& error = GetMember(frame->header, "error");
  if (error.is_object()) return std::unexpected(ErrorFromJson(error));
  return *std::move(frame);
}

}  // namespace

Result<std::unique_ptr<HomeMount>> HomeMount::Start(
    const std::string& home, const std::string& mountpoint,
    const std::string& store, const RunLimits& limits) {
  std::shared_ptr<UniqueFd> limit_signal;
  if (limits.any()) limit_signal = TRY(MakeLimitSignal());
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return Fail(errno, "socketpair");
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Fail(errno, "cannot start a process");
  if (pid == 0) {
    RunHomeDaemon({home, mountpoint, store}, limits, theirs.get(),
                  limit_signal ? limit_signal->get() : -1);
  }
  theirs.Reset();
  std::unique_ptr<HomeMount> mount(
      new HomeMount(pid, std::move(ours), mountpoint, store));
  mount->limit_signal_ = std::move(limit_signal);
  mount->process_ =
      UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  return mount;
}

Status HomeMount::Await() {
  TRY(Receive(channel_.get()));
  return {};
}

HomeMount::~HomeMount() {
  // Once nothing is left but the process, the kernel ends it alone, which takes
  // milliseconds.
  if (is_finished_ && Receive(channel_.get())) return;
  channel_.Reset();
  int state = 0;
  while (::waitpid(daemon_, &state, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(state)) return;
  // It could not remove them itself.
  std::ignore = UnmountPath(mountpoint_, true);
  ::rmdir(mountpoint_.c_str());
  std::ignore = RemoveTree(AT_FDCWD, store_);
}

Result<HomeChanges> HomeMount::Finish(const std::vector<std::string>& keep,
                                      const std::vector<std::string>& except) {
  Frame request;
  request.header["keep"] = EncodeList(keep);
  request.header["except"] = EncodeList(except);
  TRY(WriteFrame(channel_.get(), request));
  const Frame reply = TRY(Receive(channel_.get()));
  is_finished_ = true;
  return HomeChanges{
      .kept = DecodeList(GetMember(reply.header, "kept")),
      .not_kept = DecodeList(GetMember(reply.header, "not_kept")),
      .held = DecodeList(GetMember(reply.header, "held")),
      .problem = GetBytes(reply.header, "problem")};
}

}  // namespace txfs::cli

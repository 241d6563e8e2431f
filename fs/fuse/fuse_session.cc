#include "fs/fuse/fuse_session.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "fs/fuse/fuse_announce.h"
#include "fs/fuse/fuse_mount.h"
#include "fs/fuse/fuse_notify.h"
#include "fs/fuse/fuse_ops.h"
#include "fs/fuse/fuse_refused.h"
#include "fs/fuse/fuse_stale.h"
#include "fs/fuse/fuse_unknown.h"
#include "fs/fuse/fuse_workers.h"

namespace txfs {
namespace {

struct DestroySession {
  void operator()(fuse_session* session) const {
    fuse_session_destroy(session);
  }
};
using SessionPointer = std::unique_ptr<fuse_session, DestroySession>;

FuseContext& ContextAt(void* userdata) {
  return *static_cast<FuseContext*>(userdata);
}

// No noexcept here: a worker that is cancelled unwinds through it.
ssize_t ReceiveRequest(int fd, void* buffer, size_t size, void* userdata) {
  const ssize_t n = ::read(fd, buffer, size);
  if (n > 0) {
    ContextAt(userdata).wire.OnRequest(
        {static_cast<const std::byte*>(buffer), static_cast<size_t>(n)});
  }
  return n;
}

ssize_t SendReply(int fd, iovec* parts, int count, void* userdata) {
  return ContextAt(userdata).wire.Send(fd, parts, count);
}

Result<SessionPointer> NewSession(FuseContext& context) {
  char program[] = "txfs";
  char* arguments[] = {program, nullptr};
  fuse_args args = FUSE_ARGS_INIT(1, arguments);
  SessionPointer session(
      fuse_session_new(&args, &FuseOps(), sizeof(fuse_lowlevel_ops), &context));
  fuse_opt_free_args(&args);
  if (!session) return Fail(ENOMEM, "cannot start a FUSE session");
  return session;
}

/// Hands `device` over to `session`, whether or not it succeeds.
Status Attach(fuse_session* session, UniqueFd device) {
  fuse_custom_io io{};
  io.read = ReceiveRequest;
  io.writev = SendReply;
  const int error = fuse_session_custom_io(session, &io, device.get());
  if (error != 0) return Fail(-error, "cannot serve the mount");
  (void)device.Release();
  return {};
}

unsigned ThreadCount(unsigned asked) {
  if (asked != 0) return asked;
  return std::clamp(std::thread::hardware_concurrency(), 2U, 4U);
}

class MountedSession final : public FuseSession {
 public:
  MountedSession(std::unique_ptr<FuseContext> context, SessionPointer session,
                 UniqueFd wake, const MountEntry& mount,
                 const MountOptions& options)
      : context_(std::move(context)),
        session_(std::move(session)),
        caches_(session_.get(), fuse_session_fd(session_.get())),
        refused_pages_(session_.get()),
        stale_told_(context_->fs, caches_),
        announcer_(context_->fs, session_.get(), mount.mountpoint),
        wake_(std::move(wake)),
        mountpoint_(mount.mountpoint),
        threads_(ThreadCount(options.threads)),
        on_end_(options.on_end),
        device_(mount.device()) {
    context_->session = session_.get();
    context_->refused_pages = &refused_pages_;
    context_->stale_told = &stale_told_;
    context_->announcer = &announcer_;
  }

  ~MountedSession() override {
    // Nobody will answer any more: better no mount than a dead one.
    (void)Unmount(true);
  }

  Status Run() override {
    // What the kernel is told of waits for requests: they must be served still.
    const int device = fuse_session_fd(session_.get());
    const auto answer = [&](ByteSpan request) {
      return AnswerUnknown(*context_, device, request);
    };
    return ServeUntilWoken(session_.get(), threads_, wake_.get(), answer,
                           [this] {
                             if (on_end_) on_end_();
                             refused_pages_.End();
                             stale_told_.End();
                             announcer_.End();
                           });
  }

  void Stop() override {
    const uint64_t one = 1;
    // Fails only when the counter is full, and then it is set anyway.
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  Status Unmount(bool lazy) override {
    if (!lazy) announcer_.Await();
    // Once the kernel has let go of it, the next mount may have its number.
    if (AwaitDisconnect(0) && !IsMountDead(mountpoint_)) return {};
    return UnmountPath(mountpoint_, lazy, device_);
  }

  [[nodiscard]] dev_t device() const override { return device_; }

  [[nodiscard]] std::map<std::string, uint64_t> requests() const override {
    return context_->wire.requests().Named();
  }

  bool AwaitDisconnect(int timeout_ms) override {
    // Asked for nothing, it tells of nothing else.
    pollfd device{
        .fd = fuse_session_fd(session_.get()), .events = 0, .revents = 0};
    return ::poll(&device, 1, timeout_ms) > 0;
  }

  void Invalidate(const StaleCaches& stale) override { caches_.Forget(stale); }

  void Announce(const std::vector<PathEvent>& events) override {
    announcer_.Announce(events);
  }

 private:
  std::unique_ptr<FuseContext> context_;  ///< outlives session_
  SessionPointer session_;                ///< owns the connection
  KernelCaches caches_;
  RefusedPages refused_pages_;
  StaleTold stale_told_;
  Announcer announcer_;
  UniqueFd wake_;
  std::string mountpoint_;
  unsigned threads_;
  std::function<void()> on_end_;
  dev_t device_;
};

}  // namespace

Result<std::unique_ptr<FuseSession>> FuseSession::Mount(
    Filesystem& filesystem, const MountOptions& options) {
  auto context = std::make_unique<FuseContext>(filesystem, options.log);
  SessionPointer session = TRY(NewSession(*context));
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return Fail(errno, "eventfd");
  FuseMount mount = TRY(MountFuse(options));
  const auto attached = Attach(session.get(), std::move(mount.device));
  if (!attached) {
    (void)UnmountPath(mount.entry.mountpoint, true, mount.entry.device());
    return std::unexpected(attached.error());
  }
  return std::make_unique<MountedSession>(std::move(context),
                                          std::move(session), std::move(wake),
                                          mount.entry, options);
}

}  // namespace txfs

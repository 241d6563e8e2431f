#include "cli/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/wire.h"

namespace txfs::cli {
namespace {

Error DaemonGone() {
  return {.code = 0,
          .message = "the daemon went away before it answered",
          .hint =
              "`txfs status` shows what is there; nothing that was "
              "acknowledged is lost",
          .kind = ErrorKind::kFailed};
}

/// What a daemon leaves that dies in the middle of something.
Error Explain(const Error& error) {
  const bool gone =
      error.code == ECONNRESET || error.code == EPIPE || error.code == EPROTO;
  return gone ? DaemonGone() : error;
}

}  // namespace

Status Connection::Call(const Json& request, const FrameSink& sink) {
  return Exchange(request, [&](const Frame& frame) -> Status {
    const Json& error = GetMember(frame.header, "error");
    if (error.is_object()) return std::unexpected(ErrorFromJson(error));
    if (frame.header.contains("finished")) {
      if (on_finished_) on_finished_(GetBytes(frame.header, "finished"));
      return {};
    }
    return sink(frame);
  });
}

Result<Frame> Connection::Call(const Json& request) {
  Frame reply;
  TRY(Call(request, [&](const Frame& frame) -> Status {
    reply = frame;
    return {};
  }));
  return reply;
}

Result<std::unique_ptr<SocketConnection>> SocketConnection::Open(
    const std::string& path, int timeout_ms) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, path);
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Fail(errno, "socket");
  const timeval timeout{.tv_sec = timeout_ms / 1000,
                        .tv_usec = timeout_ms % 1000 * 1000L};
  for (const int direction : {SO_RCVTIMEO, SO_SNDTIMEO}) {
    if (::setsockopt(fd.get(), SOL_SOCKET, direction, &timeout,
                     sizeof timeout) != 0) {
      return Fail(errno, "set the timeout of a socket");
    }
  }
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    const std::string_view hint =
        errno == EACCES
            ? "only who mounted it may command it: run as that user, or as root"
            : "";
    return Fail(errno, "cannot reach the daemon at " + path, hint);
  }
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Fail(errno, "SO_PEERCRED");
  }
  // Whoever answers at a path in /tmp could be anybody.
  if (peer.uid != 0 && peer.uid != ::geteuid() && ::geteuid() != 0) {
    return Fail(EPERM, "the daemon at " + path + " belongs to another user");
  }
  return std::unique_ptr<SocketConnection>(
      new SocketConnection(std::move(fd), peer.pid));
}

Status SocketConnection::Exchange(const Json& request, const FrameSink& sink) {
  const Status sent = WriteFrame(
      fd_.get(), {.header = request, .payload = {}, .descriptor = {}});
  if (!sent) return std::unexpected(Explain(sent.error()));
  for (;;) {
    const auto frame = ReadFrame(fd_.get(), kReplyMax);
    if (!frame) return std::unexpected(Explain(frame.error()));
    if (!*frame) return std::unexpected(DaemonGone());
    TRY(sink(**frame));
    if (!GetBool((*frame)->header, "more")) return {};
  }
}

Result<bool> SocketConnection::AwaitExit(int timeout_ms) {
  const UniqueFd process(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  // Gone already, or of another pid namespace: then the end of the stream is
  // what tells.
  pollfd poll_fd{.fd = process.valid() ? process.get() : fd_.get(),
                 .events = POLLIN,
                 .revents = 0};
  int ready = 0;
  while ((ready = ::poll(&poll_fd, 1, timeout_ms)) < 0) {
    if (errno != EINTR) return Fail(errno, "poll");
  }
  return ready > 0;
}

}  // namespace txfs::cli

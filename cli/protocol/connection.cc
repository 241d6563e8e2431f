#include "cli/protocol/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "cli/protocol/runtime_dir.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {
namespace {

Error DaemonGone() {
  return {.code = 0,
          .message = "the daemon ended before it answered",
          .hint =
              "`txfs status` shows the state now; acknowledged changes are "
              "not lost",
          .kind = ErrorKind::kFailed};
}

/// What a daemon leaves that dies in the middle of something.
Error Explain(const Error& error) {
  const bool gone =
      error.code == ECONNRESET || error.code == EPIPE || error.code == EPROTO;
  return gone ? DaemonGone() : error;
}

Status SetSendTimeout(int fd, int timeout_ms) {
  const timeval timeout{.tv_sec = timeout_ms / 1000,
                        .tv_usec = timeout_ms % 1000 * 1000L};
  if (::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) !=
      0) {
    return Fail(errno, "set the timeout of a socket");
  }
  return {};
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

namespace {

/// connect(2) to the socket `path`, which may be of any length.
Result<UniqueFd> ConnectTo(const std::string& path, int timeout_ms) {
  const auto dir = OpenOwnParent(path);
  const std::string failure = "cannot reach the daemon at " + path;
  if (!dir && dir.error().code == EPERM) return std::unexpected(dir.error());
  if (!dir) return Fail(dir.error().code, failure);
  const std::string name = PathBelow(dir->get(), path);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) return Fail(ENAMETOOLONG, path);
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return Fail(errno, "socket");
  TRY(SetSendTimeout(fd.get(), timeout_ms));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                sizeof address) != 0) {
    const int code = errno == EAGAIN ? ETIMEDOUT : errno;
    return Fail(code, failure);
  }
  return fd;
}

}  // namespace

Result<std::unique_ptr<SocketConnection>> SocketConnection::Open(
    const std::string& path, int timeout_ms) {
  UniqueFd fd = TRY(ConnectTo(path, timeout_ms));
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return Fail(errno, "SO_PEERCRED");
  }
  // Whoever answers at a path in /tmp could be anybody.
  if (peer.uid != ::geteuid()) {
    return Fail(EPERM, "the daemon at " + path + " belongs to another user");
  }
  std::unique_ptr<SocketConnection> connection(
      new SocketConnection(std::move(fd), peer.pid));
  TRY(connection->SetTimeout(timeout_ms));
  return connection;
}

Status SocketConnection::SetTimeout(int timeout_ms) {
  timeout_ms_ = timeout_ms;
  return SetSendTimeout(fd_.get(), timeout_ms);
}

Status SocketConnection::Exchange(const Json& request, const FrameSink& sink) {
  Deadline deadline;
  if (timeout_ms_ != 0) {
    deadline = std::chrono::steady_clock::now() +
               std::chrono::milliseconds(timeout_ms_);
  }
  const Status sent = WriteFrame(
      fd_.get(), {.header = request, .payload = {}, .descriptor = {}});
  if (!sent) return std::unexpected(Explain(sent.error()));
  uint64_t total = 0;
  for (;;) {
    const auto frame = ReadFrame(fd_.get(), kReplyMax, deadline);
    if (!frame) return std::unexpected(Explain(frame.error()));
    if (!*frame) return std::unexpected(DaemonGone());
    const bool more = GetBool((*frame)->header, "more");
    total += 1024 + (*frame)->bytes;
    if (total > kWholeReplyMax) {
      return Fail(EMSGSIZE, "the daemon's reply is too long");
    }
    TRY(sink(**frame));
    if (!more) return {};
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

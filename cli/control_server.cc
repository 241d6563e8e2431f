#include "cli/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <optional>

#include "cli/runtime_dir.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxPeers = 64;
/// How long nobody is let in when there is no descriptor left, milliseconds.
constexpr int kFullMs = 100;

/// Who is at the other end; none: somebody who is to be turned away.
std::optional<ucred> AllowedPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool allowed =
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      (peer.uid == 0 || peer.uid == ::geteuid());
  return allowed ? std::optional(peer) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Listen(
    const std::string& path, Handler handler, std::function<void()> on_signal) {
  std::unique_ptr<ControlServer> server(
      new ControlServer(path, std::move(handler), std::move(on_signal)));
  TRY(server->Start());
  return server;
}

Status ControlServer::Start() {
  TRY(Bind());
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  signals_.Reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_.Reset(::eventfd(0, EFD_CLOEXEC));
  if (!signals_.valid() || !stop_.valid()) return Fail(errno, "signalfd");
  acceptor_ = std::thread([this] { AcceptLoop(); });
  return {};
}

Status ControlServer::Bind() {
  // Bound beside its name and renamed over it: whoever connects finds the old
  // socket or a new one that answers.
  const std::string temporary = path_ + "." + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, temporary);
  }
  std::memcpy(address.sun_path, temporary.c_str(), temporary.size() + 1);
  listener_.Reset(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener_.valid()) return Fail(errno, "socket");
  ::unlink(temporary.c_str());
  if (::fchmod(listener_.get(), 0600) != 0 ||
      ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) != 0 ||
      ::listen(listener_.get(), 16) != 0 ||
      ::stat(temporary.c_str(), &socket_) != 0 ||
      ::rename(temporary.c_str(), path_.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return Fail(code, "cannot listen at the control socket " + path_);
  }
  return {};
}

ControlServer::~ControlServer() {
  Stop();
  // A daemon that took over the mountpoint may have put its own socket here.
  RemoveSocket(path_, socket_);
}

void ControlServer::Stop() {
  if (!acceptor_.joinable()) return;
  const uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  acceptor_.join();
  // No thread adds peers any more; each ends at the end of its input.
  std::list<Peer>* peers = nullptr;
  {
    const MutexLock lock(mutex_);
    for (const Peer& peer : peers_) ::shutdown(peer.fd.get(), SHUT_RD);
    peers = &peers_;
  }
  for (Peer& peer : *peers) peer.thread.join();
}

void ControlServer::AcceptLoop() {
  std::array<pollfd, 3> fds{};
  fds[0] = {.fd = listener_.get(), .events = POLLIN, .revents = 0};
  fds[1] = {.fd = signals_.get(), .events = POLLIN, .revents = 0};
  fds[2] = {.fd = stop_.get(), .events = POLLIN, .revents = 0};
  for (;;) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[2].revents != 0) return;
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      on_signal_();
    }
    if (fds[0].revents == 0 || Accept()) continue;
    // Who knocks goes on knocking.
    if (::poll(&fds[1], fds.size() - 1, kFullMs) < 0 && errno != EINTR) return;
  }
}

bool ControlServer::Accept() {
  Reap();
  UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return errno != EMFILE && errno != ENFILE;
  const auto allowed = AllowedPeer(fd.get());
  if (!allowed) return true;
  const MutexLock lock(mutex_);
  if (peers_.size() >= kMaxPeers) return true;
  Peer& peer = peers_.emplace_back();
  peer.fd = std::move(fd);
  peer.pid = allowed->pid;
  peer.thread = std::thread([this, &peer] { Serve(peer); });
  return true;
}

void ControlServer::Reap() {
  std::list<Peer> finished;
  const MutexLock lock(mutex_);
  for (auto at = peers_.begin(); at != peers_.end();) {
    const auto next = std::next(at);
    if (at->done) finished.splice(finished.end(), peers_, at);
    at = next;
  }
  for (Peer& peer : finished) peer.thread.join();
}

void ControlServer::Serve(Peer& peer) {
  const int fd = peer.fd.get();
  for (;;) {
    const Result<std::optional<Frame>> request = ReadFrame(fd, kRequestMax);
    // Its descriptor is open until somebody else comes, or the daemon ends.
    if (!request) ::shutdown(fd, SHUT_RDWR);
    if (!request || !*request) break;
    const Status sent = handler_(
        (*request)->header,
        [fd](const Frame& reply) { return WriteFrame(fd, reply); }, peer.pid);
    if (!sent) break;
  }
  const MutexLock lock(mutex_);
  peer.done = true;
}

}  // namespace txfs::cli

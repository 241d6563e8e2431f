#include "cli/daemon/control_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <optional>

#include "cli/protocol/runtime_dir.h"

namespace txfs::cli {
namespace {

/// Beyond so many peers those that say nothing, or do not take what they asked
/// for, have to go for a new one.
constexpr size_t kMaxPeers = 64;
/// Beyond so many, all of whom are being answered, nobody is let in.
constexpr size_t kMostPeers = 256;
/// How long a peer may take nothing of what is sent to it, seconds: the daemon
/// could not end.
constexpr time_t kStuckSeconds = 30;
/// How long nobody is let in when there is no descriptor left, milliseconds.
constexpr int kFullMs = 100;

/// Who is at the other end; none: somebody who is to be turned away.
std::optional<ucred> AllowedPeer(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  const bool allowed =
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
      peer.uid == ::geteuid();
  return allowed ? std::optional(peer) : std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ControlServer>> ControlServer::Listen(
    const std::vector<std::string>& paths, Json hello, Handler handler,
    std::function<void()> on_signal) {
  std::unique_ptr<ControlServer> server(
      new ControlServer(hello.is_object() ? std::move(hello) : Json::object(),
                        std::move(handler), std::move(on_signal)));
  TRY(server->Start(paths));
  return server;
}

Status ControlServer::Start(const std::vector<std::string>& paths) {
  std::optional<Error> first_error;
  for (const std::string& path : paths) {
    auto listener = Bind(path);
    if (listener) listeners_.push_back(std::move(*listener));
    if (!listener && !first_error) first_error = listener.error();
  }
  if (listeners_.empty()) {
    return std::unexpected(first_error.value_or(Error{.code = EINVAL}));
  }
  sigset_t set;
  sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, signal);
  signals_.Reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  stop_.Reset(::eventfd(0, EFD_CLOEXEC));
  if (!signals_.valid() || !stop_.valid()) return Fail(errno, "signalfd");
  acceptor_ = std::thread([this] { AcceptLoop(); });
  return {};
}

Result<ControlServer::Listener> ControlServer::Bind(const std::string& path) {
  // Bound beside its name and renamed over it: whoever connects finds the old
  // socket or a new one that answers. All by way of the directory that was
  // found to be ours.
  const UniqueFd dir = TRY(OpenOwnParent(path));
  const std::string name = PathBelow(dir.get(), path);
  const std::string temporary = name + "." + std::to_string(::getpid());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (temporary.size() >= sizeof address.sun_path) {
    return Fail(ENAMETOOLONG, temporary);
  }
  std::memcpy(address.sun_path, temporary.c_str(), temporary.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Fail(errno, "socket");
  ::unlink(temporary.c_str());
  struct stat st{};
  const bool listens =
      ::fchmod(fd.get(), 0600) == 0 &&
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof address) == 0 &&
      ::listen(fd.get(), 2 * kMaxPeers) == 0 &&
      ::lstat(temporary.c_str(), &st) == 0;
  if (!listens || ::rename(temporary.c_str(), name.c_str()) != 0) {
    const int code = errno;
    ::unlink(temporary.c_str());
    return Fail(code, "cannot listen at the control socket " + path);
  }
  return Listener{.socket = {.path = path, .stamp = SocketStamp(st)},
                  .fd = std::move(fd)};
}

ControlServer::~ControlServer() {
  Stop();
  // A daemon that took over the mountpoint may have put its own sockets there.
  for (const Listener& listener : listeners_) {
    RemoveSocket(listener.socket.path, listener.socket.stamp);
  }
}

std::vector<ControlServer::Socket> ControlServer::sockets() const {
  std::vector<Socket> sockets;
  for (const Listener& listener : listeners_) {
    sockets.push_back(listener.socket);
  }
  return sockets;
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
  std::vector<pollfd> fds;
  fds.push_back({.fd = signals_.get(), .events = POLLIN, .revents = 0});
  fds.push_back({.fd = stop_.get(), .events = POLLIN, .revents = 0});
  const size_t first = fds.size();
  for (const Listener& listener : listeners_) {
    fds.push_back({.fd = listener.fd.get(), .events = POLLIN, .revents = 0});
  }
  for (;;) {
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[1].revents != 0) return;
    signalfd_siginfo signal{};
    if (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      on_signal_();
    }
    bool full = false;
    for (size_t i = first; i < fds.size(); ++i) {
      if (fds[i].revents != 0 && !Accept(fds[i].fd)) full = true;
    }
    // Who knocks goes on knocking.
    if (full && ::poll(fds.data(), first, kFullMs) < 0 && errno != EINTR) {
      return;
    }
  }
}

bool ControlServer::Accept(int listener) {
  Reap();
  UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!fd.valid()) return errno != EMFILE && errno != ENFILE;
  const auto allowed = AllowedPeer(fd.get());
  const timeval stuck{.tv_sec = kStuckSeconds, .tv_usec = 0};
  if (!allowed || ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &stuck,
                               sizeof stuck) != 0) {
    return true;
  }
  const MutexLock lock(mutex_);
  if (!MakeRoom()) return true;
  Peer& peer = peers_.emplace_back();
  peer.fd = std::move(fd);
  peer.pid = allowed->pid;
  peer.since = ++waits_;
  peer.thread = std::thread([this, &peer] { Serve(peer); });
  return true;
}

bool ControlServer::MakeRoom() {
  Peer* idlest = nullptr;
  size_t there = 0;
  for (Peer& peer : peers_) {
    if (peer.hung_up || peer.done) continue;
    ++there;
    if (peer.waits && (idlest == nullptr || peer.since < idlest->since)) {
      idlest = &peer;
    }
  }
  if (there < kMaxPeers) return peers_.size() < kMostPeers;
  if (idlest != nullptr) {
    idlest->hung_up = true;
    ::shutdown(idlest->fd.get(), SHUT_RDWR);
  }
  return peers_.size() < kMostPeers;
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

void ControlServer::SetWaits(Peer& peer, bool waits) {
  const MutexLock lock(mutex_);
  peer.waits = waits;
  if (waits) peer.since = ++waits_;
}

Status ControlServer::Answer(Peer& peer, const Json& request) {
  const auto send = [&](const Frame& reply) -> Status {
    // The peer may not take it.
    SetWaits(peer, true);
    TRY(WriteFrame(peer.fd.get(), reply));
    SetWaits(peer, false);
    return {};
  };
  if (GetBytes(request, "request") != "hello") {
    return handler_(request, send, peer.pid);
  }
  return send({.header = hello_, .payload = {}, .descriptor = {}});
}

void ControlServer::Serve(Peer& peer) {
  const int fd = peer.fd.get();
  for (;;) {
    const Result<std::optional<Frame>> request = ReadFrame(fd, kRequestMax);
    // Its descriptor is open until somebody else comes, or the daemon ends.
    if (!request) ::shutdown(fd, SHUT_RDWR);
    if (!request || !*request) break;
    SetWaits(peer, false);
    const Status sent = Answer(peer, (*request)->header);
    SetWaits(peer, true);
    if (!sent) break;
  }
  const MutexLock lock(mutex_);
  peer.done = true;
}

}  // namespace txfs::cli

#pragma once

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "cli/protocol/framing.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The daemon's control socket: a thread that accepts, one per connection.
class ControlServer {
 public:
  /// Answers a request; runs on the connection's thread, several at once.
  /// `peer` is the process that connected; 0: of another pid namespace.
  using Handler = std::function<Status(const Json& request,
                                       const FrameSink& sink, pid_t peer)>;

  /// Where it listens.
  struct Socket {
    std::string path, stamp;  ///< SocketStamp
  };

  /// Listens at those of `paths` where it can, at one at least, 0600, in place
  /// of stale sockets. Peers of other users are turned away. The request
  /// "hello" is answered with `hello` at once, whatever else goes on.
  /// `on_signal` runs for SIGINT, SIGTERM and SIGHUP, which the caller has
  /// blocked in every thread.
  static Result<std::unique_ptr<ControlServer>> Listen(
      const std::vector<std::string>& paths, Json hello, Handler handler,
      std::function<void()> on_signal);

  /// Stops, waits for requests that are being answered, removes the socket.
  /// Connections end only now, so that peers see when all is done.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] std::vector<Socket> sockets() const;

  /// Takes no more requests and waits for those that are being answered.
  void Stop() EXCLUDES(mutex_);

 private:
  struct Listener {
    Socket socket;
    UniqueFd fd;
  };
  struct Peer {
    UniqueFd fd;
    pid_t pid = 0;
    std::thread thread;
    /// Whether the daemon waits for the peer, and since when: the count of such
    /// waits at its begin.
    bool waits = true;
    uint64_t since = 0;
    bool hung_up = false;  ///< by us, to make room
    bool done = false;
  };

  ControlServer(Json hello, Handler handler, std::function<void()> on_signal)
      : hello_(std::move(hello)),
        handler_(std::move(handler)),
        on_signal_(std::move(on_signal)) {}
  Status Start(const std::vector<std::string>& paths);
  static Result<Listener> Bind(const std::string& path);
  void AcceptLoop();
  /// False when there is no descriptor for who wants in.
  bool Accept(int listener) EXCLUDES(mutex_);
  void Reap() EXCLUDES(mutex_);
  /// Hangs up on the peer that the daemon has waited for longest if there are
  /// too many. False when there is no room all the same.
  bool MakeRoom() REQUIRES(mutex_);
  void Serve(Peer& peer) EXCLUDES(mutex_);
  Status Answer(Peer& peer, const Json& request) EXCLUDES(mutex_);
  void SetWaits(Peer& peer, bool waits) EXCLUDES(mutex_);

  const Json hello_;
  const Handler handler_;
  const std::function<void()> on_signal_;
  std::vector<Listener> listeners_;
  UniqueFd signals_, stop_;
  std::thread acceptor_;
  Mutex mutex_;
  std::list<Peer> peers_ GUARDED_BY(mutex_);
  uint64_t waits_ GUARDED_BY(mutex_) = 0;
};

}  // namespace txfs::cli

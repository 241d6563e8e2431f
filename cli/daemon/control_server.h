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

/// Serves the daemon's control socket: one thread accepts, one thread serves
/// each connection.
class ControlServer {
 public:
  /// Answers a request. Runs on the connection's thread, concurrently for
  /// several connections. `peer` is the process that connected; 0: in another
  /// pid namespace.
  using Handler = std::function<Status(const Json& request,
                                       const FrameSink& sink, pid_t peer)>;

  /// A socket at which the server listens.
  struct Socket {
    std::string path, stamp;  ///< SocketStamp
  };

  /// Listens at all of `paths` where this is possible, at least at one, with
  /// mode 0600; replaces stale sockets. Closes connections of other users.
  /// Answers the request "hello" with `hello` without calling `handler`. Calls
  /// `on_signal` on SIGINT, SIGTERM and SIGHUP, which the caller has blocked in
  /// all threads.
  static Result<std::unique_ptr<ControlServer>> Listen(
      const std::vector<std::string>& paths, Json hello, Handler handler,
      std::function<void()> on_signal);

  /// Stops, waits for requests in progress and removes the sockets. Closes
  /// connections only now, so that peers see when everything is done.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  [[nodiscard]] std::vector<Socket> sockets() const;

  /// Takes no further requests and waits for requests in progress.
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
    /// Whether the daemon waits for the peer, and the number of such waits when
    /// this one began.
    bool waits = true;
    uint64_t since = 0;
    bool hung_up = false;  ///< to make room
    bool done = false;
  };

  ControlServer(Json hello, Handler handler, std::function<void()> on_signal)
      : hello_(std::move(hello)),
        handler_(std::move(handler)),
        on_signal_(std::move(on_signal)) {}
  Status Start(const std::vector<std::string>& paths);
  static Result<Listener> Bind(const std::string& path);
  void AcceptLoop();
  /// False if there is no descriptor for the new connection.
  bool Accept(int listener) EXCLUDES(mutex_);
  void Reap() EXCLUDES(mutex_);
  /// If there are too many peers, closes the connection of the one for which
  /// the daemon has waited longest. False if there is still no room.
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

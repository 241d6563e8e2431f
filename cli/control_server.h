#pragma once

#include <sys/stat.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>

#include "cli/framing.h"
#include "journal/base/mutex.h"
#include "journal/base/result.h"
#include "journal/base/unique_fd.h"

namespace txfs::cli {

/// The daemon's control socket: a thread that accepts, one per connection.
class ControlServer {
 public:
  /// Answers a request; runs on the connection's thread, several at once.
  /// `peer` is the process that connected; 0: of another pid namespace.
  using Handler = std::function<Status(const Json& request,
                                       const FrameSink& sink, pid_t peer)>;

  /// Listens at `path`, 0600, in place of a stale socket. Peers other than root
  /// and the own user are turned away. `on_signal` runs for SIGINT, SIGTERM and
  /// SIGHUP, which the caller has blocked in every thread.
  static Result<std::unique_ptr<ControlServer>> Listen(
      const std::string& path, Handler handler,
      std::function<void()> on_signal);

  /// Stops, waits for requests that are being answered, removes the socket.
  /// Connections end only now, so that peers see when all is done.
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  /// The socket it listens at.
  [[nodiscard]] const struct stat& socket() const { return socket_; }

  /// Takes no more requests and waits for those that are being answered.
  void Stop() EXCLUDES(mutex_);

 private:
  struct Peer {
    UniqueFd fd;
    pid_t pid = 0;
    std::thread thread;
    bool done = false;
  };

  ControlServer(std::string path, Handler handler,
                std::function<void()> on_signal)
      : path_(std::move(path)),
        handler_(std::move(handler)),
        on_signal_(std::move(on_signal)) {}
  Status Start();
  Status Bind();
  void AcceptLoop();
  /// False when there is no descriptor for who wants in.
  bool Accept() EXCLUDES(mutex_);
  void Reap() EXCLUDES(mutex_);
  void Serve(Peer& peer) EXCLUDES(mutex_);

  const std::string path_;
  const Handler handler_;
  const std::function<void()> on_signal_;
  UniqueFd listener_, signals_, stop_;
  struct stat socket_{};
  std::thread acceptor_;
  Mutex mutex_;
  std::list<Peer> peers_ GUARDED_BY(mutex_);
};

}  // namespace txfs::cli

#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/dispatcher.h"
#include "cli/protocol/framing.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// A connection to a workspace's transaction.
class Connection {
 public:
  virtual ~Connection() = default;

  /// Sets the listener for the id of a commit whose process had died and which
  /// was finished before the reply. None by default.
  void OnFinished(std::function<void(std::string_view id)> listener) {
    on_finished_ = std::move(listener);
  }
  /// Passes every frame of the reply to `request` to `sink`. Returns an error
  /// in the reply.
  Status Call(const Json& request, const FrameSink& sink);
  /// The frame of a one-frame reply.
  Result<Frame> Call(const Json& request);

 protected:
  virtual Status Exchange(const Json& request, const FrameSink& sink) = 0;

 private:
  std::function<void(std::string_view id)> on_finished_;
};

/// Most bytes of all messages of one reply, with 1 KiB added to each.
inline constexpr uint64_t kWholeReplyMax = uint64_t{4} << 30;

/// A connection to a daemon of the calling user, over its control socket.
class SocketConnection : public Connection {
 public:
  /// ENOENT or ECONNREFUSED if no daemon listens at `path`; EPERM if the
  /// daemon, or the directory of its socket, is another user's. `timeout_ms`:
  /// as in SetTimeout, and the time to wait for the connection.
  static Result<std::unique_ptr<SocketConnection>> Open(const std::string& path,
                                                        int timeout_ms = 0);

  /// The time for each call (ETIMEDOUT), milliseconds; 0: no limit.
  Status SetTimeout(int timeout_ms);

  /// The daemon's process.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits until the daemon has ended, at most `timeout_ms` (-1: no limit);
  /// returns whether it has.
  Result<bool> AwaitExit(int timeout_ms);

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override;

 private:
  SocketConnection(UniqueFd fd, pid_t pid) : fd_(std::move(fd)), pid_(pid) {}
  UniqueFd fd_;
  pid_t pid_;
  int timeout_ms_ = 0;
};

/// A workspace that this process opened itself, because no daemon serves it.
class LocalConnection : public Connection {
 public:
  /// `has_next` and `tell`: as in Host.
  LocalConnection(std::unique_ptr<Workspace> workspace, bool has_next,
                  TellSiblings tell)
      : workspace_(std::move(workspace)),
        dispatcher_(*workspace_, {.pid = 0,
                                  .mountpoint = {},
                                  .has_next = has_next,
                                  .announce = {},
                                  .tell_siblings = std::move(tell)}) {}
  /// The requests are done. If Close fails, the next Open cleans up.
  ~LocalConnection() override { std::ignore = workspace_->Close(); }

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override {
    return dispatcher_.Handle(request, sink);
  }

 private:
  std::unique_ptr<Workspace> workspace_;
  Dispatcher dispatcher_;
};

/// Store and base of a workspace, without a transaction.
class ArchiveConnection : public Connection {
 public:
  ArchiveConnection(std::unique_ptr<Archive> archive, TellSiblings tell)
      : archive_(std::move(archive)),
        dispatcher_(*archive_, {}, std::move(tell)) {}

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override {
    return dispatcher_.Handle(request, sink);
  }

 private:
  std::unique_ptr<Archive> archive_;
  ArchiveDispatcher dispatcher_;
};

}  // namespace txfs::cli

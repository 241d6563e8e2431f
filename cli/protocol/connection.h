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

/// A way to a workspace's transaction.
class Connection {
 public:
  virtual ~Connection() = default;

  /// What to do with the id of a commit that a process had died in, and that
  /// was finished before an answer. By default nothing.
  void OnFinished(std::function<void(std::string_view id)> listener) {
    on_finished_ = std::move(listener);
  }
  /// Gives every frame of the reply to `request` to `sink`. An error in the
  /// reply is returned.
  Status Call(const Json& request, const FrameSink& sink);
  /// The only frame of a reply that has one.
  Result<Frame> Call(const Json& request);

 protected:
  virtual Status Exchange(const Json& request, const FrameSink& sink) = 0;

 private:
  std::function<void(std::string_view id)> on_finished_;
};

/// Most bytes that the messages of one reply may have together; each counts
/// for 1 KiB more than it has.
inline constexpr uint64_t kWholeReplyMax = uint64_t{4} << 30;

/// To a daemon of the calling user, over its control socket.
class SocketConnection : public Connection {
 public:
  /// ENOENT or ECONNREFUSED when no daemon listens at `path`, EPERM when the
  /// daemon, or the directory of its socket, is another user's. `timeout_ms`:
  /// as SetTimeout, and how long to wait for the connection.
  static Result<std::unique_ptr<SocketConnection>> Open(const std::string& path,
                                                        int timeout_ms = 0);

  /// How long each call may take (ETIMEDOUT), milliseconds; 0: for ever.
  Status SetTimeout(int timeout_ms);

  /// The daemon's process.
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Waits until the daemon is gone, at most `timeout_ms` (-1: for ever);
  /// returns whether it is.
  Result<bool> AwaitExit(int timeout_ms);

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override;

 private:
  SocketConnection(UniqueFd fd, pid_t pid) : fd_(std::move(fd)), pid_(pid) {}
  UniqueFd fd_;
  pid_t pid_;
  int timeout_ms_ = 0;
};

/// To a workspace that this process opened itself, because nothing serves it.
class LocalConnection : public Connection {
 public:
  /// `has_next` and `tell` as in Host.
  LocalConnection(std::unique_ptr<Workspace> workspace, bool has_next,
                  TellSiblings tell)
      : workspace_(std::move(workspace)),
        dispatcher_(*workspace_, {.pid = 0,
                                  .mountpoint = {},
                                  .has_next = has_next,
                                  .announce = {},
                                  .tell_siblings = std::move(tell)}) {}
  /// What it was asked is done; what cannot be closed now, the next Open
  /// tidies.
  ~LocalConnection() override { std::ignore = workspace_->Close(); }

 protected:
  Status Exchange(const Json& request, const FrameSink& sink) override {
    return dispatcher_.Handle(request, sink);
  }

 private:
  std::unique_ptr<Workspace> workspace_;
  Dispatcher dispatcher_;
};

/// To store and base of a workspace, without a transaction.
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

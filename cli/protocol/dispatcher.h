#pragma once

#include <functional>

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/framing.h"
#include "fs/workspace/workspace.h"

namespace txfs::cli {

/// The answering process, as far as requests depend on it.
struct Host {
  uint32_t pid = 0;        ///< of the daemon; 0: none, this command itself
  std::string mountpoint;  ///< empty: not mounted
  /// Whether the next transaction, after an end, is used. If not, replies do
  /// not have its id, and it is dropped when the workspace is closed.
  bool has_next = true;
  /// Publishes this process as the daemon of a new transaction; may be empty.
  std::function<void()> announce = {};
  TellSiblings tell_siblings = {};
};

/// Answers the requests of the control protocol (docs/control.md) from a
/// workspace: in the daemon, and in a command without a mount. Thread-safe as
/// Workspace is.
class Dispatcher {
 public:
  Dispatcher(Workspace& workspace, Host host)
      : workspace_(workspace), host_(std::move(host)) {}

  /// Sends the reply to `sink`: frames with "more": true, then a last one
  /// without. An error of the request is sent as a frame with "error". Returns
  /// the error of the sink.
  Status Handle(const Json& request, const FrameSink& sink);

 private:
  Status Answer(const Json& request, const FrameSink& sink);
  [[nodiscard]] std::string NextId() const;
  /// Call it when another transaction may have begun.
  void Announce();
  Status AnswerStatus(const Json& request, const FrameSink& sink);
  Status AnswerConflicts(const FrameSink& sink);
  Status AnswerChanges(const Json& request, const FrameSink& sink);
  Status AnswerRead(const Json& request, const FrameSink& sink);
  Result<size_t> ReadSide(const Json& item, uint64_t offset,
                          MutableByteSpan out);
  Status AnswerLog(const Json& request, const FrameSink& sink);
  /// Visits denials from `first` on; returns how many more there were.
  Result<uint64_t> VisitDenials(
      Lsn first, const std::function<bool(const LogEntry&)>& visit);
  Status AnswerWorkspace(const FrameSink& sink);
  Status AnswerRefresh(const FrameSink& sink);
  Status AnswerCommit(const Json& request, const FrameSink& sink);
  Status AnswerPlan(const Json& request, const FrameSink& sink);
  Status AnswerDiscard(const Json& request, const FrameSink& sink);
  /// Adds the directories that the kernel has no path for until they are looked
  /// up. The requester looks them up, because the daemon would wait for itself.
  void AddMoved(Frame& frame);
  Status AnswerSavepoint(const Json& request, const FrameSink& sink);
  Status AnswerRollback(const Json& request, const FrameSink& sink);
  Status AnswerCallMark(const Json& request, const FrameSink& sink);
  Status AnswerCalls(const FrameSink& sink);
  Status AnswerCall(const Json& request, const FrameSink& sink);
  Status AnswerRevert(const Json& request, const FrameSink& sink);

  Workspace& workspace_;
  Host host_;
};

}  // namespace txfs::cli

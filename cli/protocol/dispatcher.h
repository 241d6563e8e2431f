#pragma once

#include <functional>

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/framing.h"
#include "fs/workspace/workspace.h"

namespace txfs::cli {

/// Who answers, as far as requests can see it.
struct Host {
  uint32_t pid = 0;        ///< of the daemon; 0: none, this command itself
  std::string mountpoint;  ///< empty: not mounted
  /// Whether the transaction that follows another one is for use; else it is
  /// dropped when the workspace is closed, and not spoken of.
  bool has_next = true;
  /// Lets others find us under the transaction that has begun; may be empty.
  std::function<void()> announce = {};
  TellSiblings tell_siblings = {};
};

/// Answers the requests of the control protocol from a workspace: the same for
/// the daemon and for a command that works where nothing is mounted.
/// docs/control.md has the requests. Thread-safe as Workspace is.
class Dispatcher {
 public:
  Dispatcher(Workspace& workspace, Host host)
      : workspace_(workspace), host_(std::move(host)) {}

  /// Gives the reply to `sink`: frames with "more": true, then a last one
  /// without. An error of the request is a frame with "error"; the returned
  /// error is the sink's.
  Status Handle(const Json& request, const FrameSink& sink);

 private:
  Status Answer(const Json& request, const FrameSink& sink);
  [[nodiscard]] std::string NextId() const;
  /// When another transaction may have begun.
  void Announce();
  Status AnswerStatus(const FrameSink& sink);
  Status AnswerConflicts(const FrameSink& sink);
  Status AnswerChanges(const Json& request, const FrameSink& sink);
  Status AnswerRead(const Json& request, const FrameSink& sink);
  Result<size_t> ReadSide(const Json& request, uint64_t offset,
                          MutableByteSpan out);
  Status AnswerLog(const Json& request, const FrameSink& sink);
  /// Shows those from `first` on; returns how many more there were.
  Result<uint64_t> VisitDenials(
      Lsn first, const std::function<bool(const LogEntry&)>& visit);
  Status AnswerWorkspace(const FrameSink& sink);
  Status AnswerRefresh(const FrameSink& sink);
  Status AnswerCommit(const Json& request, const FrameSink& sink);
  Status AnswerPlan(const Json& request, const FrameSink& sink);
  Status AnswerDiscard(const Json& request, const FrameSink& sink);
  /// Which directories the kernel has no path for until they are looked up:
  /// who asked does that, for a daemon would wait for itself.
  void AddMoved(Frame& frame);
  Status AnswerSavepoint(const Json& request, const FrameSink& sink);
  Status AnswerRollback(const Json& request, const FrameSink& sink);

  Workspace& workspace_;
  Host host_;
};

}  // namespace txfs::cli

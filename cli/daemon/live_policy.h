#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/daemon/approvals.h"
#include "cli/protocol/framing.h"
#include "cli/rules/policy_sources.h"
#include "fs/workspace/workspace.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// The policy of a mount and its sources. Handles the requests of the control
/// protocol for it. Thread-safe.
class LivePolicy {
 public:
  /// `workspace` was opened with `setup` and `approvals`.
  LivePolicy(Workspace& workspace, Approvals& approvals, Reach reach,
             PolicySetup setup)
      : workspace_(workspace),
        approvals_(approvals),
        reach_(std::move(reach)),
        sources_(std::move(setup.sources)),
        texts_(std::move(setup.texts)),
        checks_reads_(workspace.filesystem().ChecksReads()) {}

  /// Whether Handle takes `request`.
  static bool IsAsked(const Json& request);
  /// Sends the reply to `sink`, as Dispatcher::Handle.
  Status Handle(const Json& request, const FrameSink& sink) EXCLUDES(mutex_);

  /// Number of reloads.
  [[nodiscard]] uint64_t Reloads() EXCLUDES(mutex_);
  /// The policy in force; null: none.
  Result<std::shared_ptr<const policy::Policy>> Rules() EXCLUDES(mutex_);

  /// Reads the sources again and puts the policy in force for all operations
  /// that begin after this returns. Denies waiting questions. After an error,
  /// the previous policy stays.
  Status Reload() EXCLUDES(mutex_, reload_mutex_);

 private:
  Status AnswerJudged(const Json& request, const FrameSink& sink)
      EXCLUDES(mutex_);

  Workspace& workspace_;
  Approvals& approvals_;
  const Reach reach_;
  const policy::Sources sources_;
  /// Held during a whole reload: the last one to read its sources takes effect.
  /// A policy file may lie in a mount, so a thread that serves a mount never
  /// takes this lock.
  Mutex reload_mutex_ ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;
  std::vector<policy::SourceText> texts_ GUARDED_BY(mutex_);
  /// Of `texts_`, after they were asked for.
  std::shared_ptr<const policy::Policy> rules_ GUARDED_BY(mutex_);
  bool has_rules_ GUARDED_BY(mutex_) = false;
  uint64_t reloads_ GUARDED_BY(mutex_) = 0;
  /// Whether the mount asks at each open.
  const bool checks_reads_;
};

}  // namespace txfs::cli

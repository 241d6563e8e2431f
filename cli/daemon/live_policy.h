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

/// The rules of a mount: which are in force, and where to read them again.
/// Answers the requests of the control protocol that are about them.
/// Thread-safe.
class LivePolicy {
 public:
  /// `setup` and `approvals` are what `workspace` was opened with.
  LivePolicy(Workspace& workspace, Approvals& approvals, Reach reach,
             PolicySetup setup)
      : workspace_(workspace),
        approvals_(approvals),
        reach_(std::move(reach)),
        sources_(std::move(setup.sources)),
        texts_(std::move(setup.texts)) {}

  /// Whether `request` is for Handle.
  static bool IsAsked(const Json& request);
  /// Gives the reply to `sink`, as Dispatcher::Handle does.
  Status Handle(const Json& request, const FrameSink& sink) EXCLUDES(mutex_);

  /// How often they were exchanged.
  [[nodiscard]] uint64_t Reloads() EXCLUDES(mutex_);
  /// Those in force; null: none.
  Result<std::shared_ptr<const policy::Policy>> Rules() EXCLUDES(mutex_);

  /// Reads the rules again and puts them in force, for every operation that
  /// begins after this has returned; what waits for an answer is denied. After
  /// an error those before stay.
  Status Reload() EXCLUDES(mutex_, reload_mutex_);

 private:
  Workspace& workspace_;
  Approvals& approvals_;
  const Reach reach_;
  const policy::Sources sources_;
  /// Held by a whole reload: the one that read last is the one that holds. A
  /// file of rules may lie in a mount: who serves one never takes it.
  Mutex reload_mutex_ ACQUIRED_BEFORE(mutex_);
  Mutex mutex_;
  std::vector<policy::SourceText> texts_ GUARDED_BY(mutex_);
  uint64_t reloads_ GUARDED_BY(mutex_) = 0;
};

}  // namespace txfs::cli

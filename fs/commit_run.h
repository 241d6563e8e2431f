#pragma once

#include <string>
#include <vector>

#include "fs/commit_plan.h"
#include "fs/overlay.h"
#include "journal/base/result.h"
#include "journal/base/unique_fd.h"

namespace txfs {

/// Carries out a commit plan. `stage` is a directory on the base's filesystem.
class CommitRunner {
 public:
  CommitRunner(OverlayFilesystem::Frozen& frozen, int stage)
      : frozen_(frozen), stage_(stage) {}

  /// Before the point of no return: whether the steps are ours to do. An
  /// ordinary user may move, through the mount, what it may not move to a
  /// stage. EACCES, with path and remedy.
  Status CheckPermitted(const std::vector<CommitStep>& steps);

  /// Before the point of no return: makes the staged objects with content,
  /// owner and attributes, and fills in the steps' base_ino.
  Status Stage(CommitPlan& plan);

  /// After it: all steps in order. Skips what an interrupted run has done, so
  /// that it can be called again until it succeeds.
  Status Run(const std::vector<CommitStep>& steps);

 private:
  Status StageOne(const StagedObject& object);
  Status StageRegular(const StagedObject& object, const Inode& inode);
  Status CopyForeignXattrs(const Inode& inode, int fd);

  Status Do(const CommitStep& step);
  Status Patch(const CommitStep& step);
  Status Hold(const CommitStep& step);
  Status Detach(const CommitStep& step);
  Status Attach(const CommitStep& step);
  Status Exchange(const CommitStep& step);
  Status Link(const CommitStep& step);
  Status SetAttributes(const CommitStep& step);

  /// What is left in the stage of files that live on under other names: as
  /// long as it is there, their link counts are wrong, and when it goes, their
  /// times change.
  Status DropSharedNames(const std::vector<CommitStep>& steps);

  [[nodiscard]] bool InStage(const std::string& name) const;

  OverlayFilesystem::Frozen& frozen_;
  int stage_;
};

}  // namespace txfs

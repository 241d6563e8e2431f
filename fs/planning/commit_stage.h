#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "fs/overlay/frozen.h"
#include "fs/planning/commit_plan.h"
#include "fs/vault/commit_step.h"
#include "fs/vault/vault_sums.h"
#include "fs/vault/vaults.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// Fills the vault of a commit before its point of no return, with new objects,
/// the content that patches write and overwrite, and the sums of all that
/// content.
class VaultFiller {
 public:
  /// Calls `progress` with the number of objects and deltas in the vault.
  /// `vault` outlives this.
  VaultFiller(Frozen& frozen, const Vault& vault,
              std::function<void(size_t done)> progress = {})
      : frozen_(frozen), vault_(vault), progress_(std::move(progress)) {}

  /// Whether files in the vault can share blocks with files of the base.
  static bool CanClone(const Vault& vault);

  /// Makes everything in `plan` and returns its complete steps. Durable when
  /// this returns.
  Result<CommitSteps> Fill(const CommitPlan& plan);

  /// st_ino of all objects made, which they keep when they are committed.
  [[nodiscard]] const std::map<Ino, uint64_t>& made() const { return made_; }

 private:
  Status Make(const StagedObject& object);
  Result<UniqueFd> MakeFile(int directory, const StagedObject& object,
                            const Inode& inode);
  Status MakeRegular(int directory, const StagedObject& object,
                     const Inode& inode, ContentSum& sum);
  Result<bool> AdoptSegment(int directory, const std::string& name,
                            const Inode& inode, ContentSum& sum);
  Status FillGaps(const Inode& inode, int fd, ContentSum& sum);
  Result<bool> CloneBase(const Inode& inode, int fd);
  Status Clear(const Inode& inode, int fd, Range range);
  Status CopyRange(const Inode& inode, int fd, Range range, ContentSum& sum);
  Status SaveDelta(const StagedDelta& delta);
  Status CopyForeignXattrs(const Inode& inode, int fd);
  /// The base file of `inode`. ESTALE if another file has its path.
  Result<SharedFd> OpenOrigin(const Inode& inode) const;
  Status Keep(const Spot& spot, ContentSum sum,
              const std::optional<Timestamp>& mtime);
  Status SetAttributes(const StagedObject& object);
  Status Try(const TriedXattrs& tried);
  void CountOne() {
    if (progress_) progress_(++done_);
  }
  [[nodiscard]] uint64_t InoOf(Ino ino) const;

  Frozen& frozen_;
  const Vault& vault_;
  std::function<void(size_t done)> progress_;
  size_t done_ = 0;
  std::map<Ino, uint64_t> made_;  ///< st_ino of the objects made
  VaultSums sums_;
};

}  // namespace txfs

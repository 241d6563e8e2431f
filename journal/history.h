#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/file_lock.h"
#include "journal/summary.h"
#include "journal/support/result.h"

namespace txfs {

/// The records of a store's ended transactions, and the intent of the commit in
/// progress (docs/recovery.md). Unless a comment says otherwise, what a call
/// has written is durable when it returns.
class TransactionHistory {
 public:
  /// `store`: descriptor of the store's directory, which outlives this.
  explicit TransactionHistory(int store) : store_(store) {}

  /// Takes the commit lock, which serializes commits, undos and recovery of a
  /// store. kBusy if another process holds it.
  Result<FileLock> LockCommits(int timeout_ms) const;

  [[nodiscard]] bool HasIntent() const;
  /// ENOENT when there is none.
  Result<std::string> ReadIntent() const;
  /// Reserves disk space for what is written after the point of no return:
  /// `bytes` each for the image and the manifest, and the records. Not durable.
  Status MakeRoom(const TransactionSummary& summary, uint64_t bytes) const;
  /// Gives that space back if nothing was written. Requires that the
  /// transaction is not being discarded.
  Status DropRoom(const TransactionSummary& summary) const;
  /// Removes files that were not completely written. Keeps those of records of
  /// open transactions (`is_open`): a discard, which needs no commit lock, may
  /// be writing them. Requires the commit lock; does nothing while there is an
  /// intent.
  Status DropUnfinished(
      const std::function<Result<bool>(const std::string& id)>& is_open) const;
  /// Writes the intent: the point of no return.
  Status WriteIntent(std::string_view plan) const;
  /// Moves the intent of the finished commit `id` to the history. Succeeds if
  /// an interrupted call already did.
  Status FinishIntent(const std::string& id) const;

  /// Ids of ended transactions, in the order in which they began.
  Result<std::vector<std::string>> Ids() const;
  /// All ended transactions, in the order in which they ended.
  Result<std::vector<TransactionSummary>> ReadAll() const;
  /// Those of them that have more than their record: that can be undone, or
  /// whose plan was not dropped to the end. A command that ends a transaction
  /// must not read the record of each one that was ever discarded.
  Result<std::vector<TransactionSummary>> ReadWithPlans() const;
  Result<bool> Has(const std::string& id) const;
  /// ENOENT; EBADMSG with the path.
  Result<TransactionSummary> Read(const std::string& id) const;
  Status Write(const TransactionSummary& summary) const;

  /// Ids with a plan.
  Result<std::vector<std::string>> PlanIds() const;
  /// Reads what undo needs besides the vault. ENOENT if it is no longer kept.
  Result<std::string> ReadPlan(const std::string& id) const;
  Result<std::string> ReadImage(const std::string& id) const;
  Result<std::string> ReadManifest(const std::string& id) const;
  /// Durable once WriteManifest, which comes next, has returned.
  Status WriteImage(const std::string& id, std::string_view image) const;
  Status WriteManifest(const std::string& id, std::string_view manifest) const;
  /// Removes plan, image and manifest: `id` can no longer be undone.
  Status DropPlan(const std::string& id) const;
  /// Removes all records of `id`.
  Status Drop(const std::string& id) const;
  /// As Drop, and durable: `id` has not ended after all.
  Status Retract(const std::string& id) const;
  /// Ids with a plan, an image or a manifest, but no record.
  Result<std::vector<std::string>> Orphans() const;

 private:
  int store_;
};

/// Suffix of a plan's name, after the id, while the plan is being dropped.
inline constexpr std::string_view kDroppedPlanSuffix = ".plan.new";

/// Splits the name of a file in `history/` into the id and its suffix: "" for
/// the summary, else ".plan", ".image" or ".vault". A crash can leave files
/// with a further ".new".
[[nodiscard]] std::pair<std::string_view, std::string_view> SplitHistoryName(
    std::string_view name);

/// Reads the summary at `path` and checks that its id is `id`.
Result<TransactionSummary> ReadSummary(int dir, const std::string& path,
                                       const std::string& id);

}  // namespace txfs

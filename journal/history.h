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

/// What a store keeps of ended transactions, and the intent of the commit that
/// is under way (docs/recovery.md). Everything written is durable when the
/// call returns.
class TransactionHistory {
 public:
  /// `store`: descriptor of the store's directory, which outlives this.
  explicit TransactionHistory(int store) : store_(store) {}

  /// Commits, undos and recovery of one store come one after the other. kBusy
  /// when somebody else has it.
  Result<FileLock> LockCommits(int timeout_ms) const;

  [[nodiscard]] bool HasIntent() const;
  /// ENOENT when there is none.
  Result<std::string> ReadIntent() const;
  /// Takes space for what is written about a commit behind the point of no
  /// return: `bytes` for the image and for the manifest each. Not durable.
  Status MakeRoom(const TransactionSummary& summary, uint64_t bytes) const;
  /// Gives it back: nothing is written. Requires that the transaction is not
  /// being discarded.
  Status DropRoom(const TransactionSummary& summary) const;
  /// Removes files that were not written to their end, but for records of what
  /// `is_open`, which may be ending by a discard: that needs no lock. Requires
  /// the lock of commits; does nothing while there is an intent.
  Status DropUnfinished(
      const std::function<Result<bool>(const std::string& id)>& is_open) const;
  /// The point of no return.
  Status WriteIntent(std::string_view plan) const;
  /// The commit is done: its plan is history. Success, too, when an
  /// interrupted call did it.
  Status FinishIntent(const std::string& id) const;

  /// Ids of ended transactions, by when they began.
  Result<std::vector<std::string>> Ids() const;
  /// All of them, in the order in which they ended.
  Result<std::vector<TransactionSummary>> ReadAll() const;
  Result<bool> Has(const std::string& id) const;
  /// ENOENT; EBADMSG with the path.
  Result<TransactionSummary> Read(const std::string& id) const;
  Status Write(const TransactionSummary& summary) const;

  /// Ids of which there is a plan.
  Result<std::vector<std::string>> PlanIds() const;
  /// What undo needs besides the vault. ENOENT when it is no longer kept.
  Result<std::string> ReadPlan(const std::string& id) const;
  Result<std::string> ReadImage(const std::string& id) const;
  Result<std::string> ReadManifest(const std::string& id) const;
  /// Durable with the manifest, which is written next.
  Status WriteImage(const std::string& id, std::string_view image) const;
  Status WriteManifest(const std::string& id, std::string_view manifest) const;
  /// From here on `id` cannot be undone.
  Status DropPlan(const std::string& id) const;
  /// From here on nothing is known of `id`.
  Status Drop(const std::string& id) const;
  /// The same on disk, when this returns: `id` has not ended after all.
  Status Retract(const std::string& id) const;
  /// Ids of which there is a plan, an image or a manifest, but no record.
  Result<std::vector<std::string>> Orphans() const;

 private:
  int store_;
};

/// What a plan is named, behind the id, while it is being dropped.
inline constexpr std::string_view kDroppedPlanSuffix = ".plan.new";

/// What the file `name` in `history/` is: the id it is about, and "" for the
/// summary, else ".plan", ".image", ".vault", or with ".new" behind it what a
/// crash left of one.
[[nodiscard]] std::pair<std::string_view, std::string_view> SplitHistoryName(
    std::string_view name);

/// Reads and checks the summary at `path`, which must be of `id`.
Result<TransactionSummary> ReadSummary(int dir, const std::string& path,
                                       const std::string& id);

}  // namespace txfs

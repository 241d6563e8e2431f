#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/tree/tree.h"
#include "journal/change.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "policy/policy.h"

namespace txfs {

/// The contribution of a change to the counts of limits.
struct Tally {
  std::vector<std::string> removed;  ///< base paths
  int64_t made = 0;                  ///< inodes; negative: fewer than before
  int64_t held = 0;                  ///< bytes of content; negative: freed
  uint64_t written = 0;              ///< bytes, including overwrites
};

/// The contribution of `change`, which is not yet applied to `tree`. Content of
/// a file that loses its last name counts until the kernel forgets it.
[[nodiscard]] Tally TallyOf(const Change& change, const Tree& tree);

/// Bytes of `extents` that are in the store.
[[nodiscard]] uint64_t StoredIn(std::span<const Extent> extents);

/// The limits that are judged at each operation, and their counts. A count of a
/// transaction comes from the tree, so it follows commits, discards and
/// rollbacks and survives a crash. A window counts since Use. Requires the tree
/// lock.
class LimitMeters {
 public:
  /// `clock` outlives it.
  explicit LimitMeters(const Clock* clock) : clock_(clock) {}

  /// Uses the limits of `policy`; null: none. Windows start empty.
  void Use(std::shared_ptr<const policy::Policy> policy);
  [[nodiscard]] bool empty() const { return meters_.empty(); }

  /// Call after a change of the tree without an operation.
  void ForgetTree() { counted_ = false; }
  /// Call after a change of the base.
  void ForgetBase();

  /// Judges `change`, which is not yet applied to `tree`. A limit that only
  /// audits sets `change.rule`. Counts `base` if a limit needs it and SetTotals
  /// was not called since the last change.
  Status Judge(Change& change, Tree& tree, const BaseDirectory& base);
  /// Counts the change that was judged last.
  void Count();
  /// Subtracts freed extents.
  void GiveBack(std::span<const Extent> freed);

  /// The limits that need the size of the base for one more removal and do not
  /// have it. Get it with CountBase, without the tree lock.
  [[nodiscard]] std::vector<const policy::Limit*> Wanting(Tree& tree);
  void SetTotals(std::span<const policy::Limit* const> limits,
                 std::span<const uint64_t> totals);

 private:
  struct Meter {
    const policy::Limit* limit;
    uint64_t count = 0;  ///< limits without a window
    std::optional<policy::Window> window;
    std::optional<uint64_t> total;  ///< in the base, if known
    int64_t added = 0;              ///< by the change in Judge
  };

  void CountTree(Tree& tree);
  [[nodiscard]] uint64_t CountOf(Meter& meter, uint64_t now) const;
  Status JudgeOne(Meter& meter, uint64_t now, Change& change,
                  const BaseDirectory& base);

  const Clock* const clock_;
  std::shared_ptr<const policy::Policy> policy_;  ///< shared with the overlay
  std::vector<Meter> meters_;
  bool counted_ = false;  ///< whether `count` is up to date
  bool has_windows_ = false;
};

}  // namespace txfs

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

/// What a change does of what limits count.
struct Tally {
  std::vector<std::string> removed;  ///< base paths
  int64_t made = 0;                  ///< inodes; less than 0: fewer than before
  int64_t held = 0;                  ///< bytes of content, likewise
  uint64_t written = 0;              ///< bytes, whatever they replace
};

/// Of `change` before it is applied to `tree`. Content of what loses its last
/// name is held until it is forgotten.
[[nodiscard]] Tally TallyOf(const Change& change, const Tree& tree);

/// Bytes of `extents` that are in the store.
[[nodiscard]] uint64_t StoredIn(std::span<const Extent> extents);

/// Limits that are judged at the operation, and how much was done of what each
/// counts. Of a transaction that is what its tree holds now: it follows every
/// end and rollback, and a crash takes nothing from it. Of a window it is what
/// was done while this was there. Requires the tree lock.
class LimitMeters {
 public:
  /// `clock` outlives it.
  explicit LimitMeters(const Clock* clock) : clock_(clock) {}

  /// From now on those of `policy`; null: none. What was done counts.
  void Use(std::shared_ptr<const policy::Policy> policy);
  [[nodiscard]] bool empty() const { return meters_.empty(); }

  /// Something else than an operation changed the tree.
  void ForgetTree() { counted_ = false; }
  /// Somebody changed the base.
  void ForgetBase();

  /// Judges `change`, before it is applied to `tree`; what is only noted is
  /// noted in it. Looks at all of `base` where a limit needs that and nobody
  /// has called SetTotals since the base changed.
  Status Judge(Change& change, Tree& tree, const BaseDirectory& base);
  /// The change that was judged last is done.
  void Count();
  /// These are held no more.
  void GiveBack(std::span<const Extent> freed);

  /// Those that will need to know how much the base has, if one more thing is
  /// removed, and do not. CountBase says it, without the tree lock.
  [[nodiscard]] std::vector<const policy::Limit*> Wanting(Tree& tree);
  void SetTotals(std::span<const policy::Limit* const> limits,
                 std::span<const uint64_t> totals);

 private:
  struct Meter {
    const policy::Limit* limit;
    uint64_t count = 0;  ///< without a window
    std::optional<policy::Window> window;
    std::optional<uint64_t> total;  ///< of the base, if it is known
    int64_t added = 0;              ///< by the change that is judged
  };

  void CountTree(Tree& tree);
  [[nodiscard]] uint64_t CountOf(Meter& meter, uint64_t now) const;
  Status JudgeOne(Meter& meter, uint64_t now, Change& change,
                  const BaseDirectory& base);

  const Clock* const clock_;
  std::shared_ptr<const policy::Policy> policy_;  ///< shared with the overlay
  std::vector<Meter> meters_;
  bool counted_ = false;  ///< what the tree holds
  bool has_windows_ = false;
};

}  // namespace txfs

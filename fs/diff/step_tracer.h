#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fs/vault/commit_step.h"

namespace txfs {

/// An object that the steps of a commit move.
struct TracedObject {
  Spot origin;                     ///< its place before the steps
  std::set<std::string> before;    ///< its names in the base before the steps
  std::vector<Spot> after;         ///< its names in base and vault after them
  std::optional<Delta> old_bytes;  ///< for a patched file
  std::optional<ObjectAttributes> set_before, set_after;
  /// Its entries that steps refer to; null: removed.
  std::map<std::string, std::shared_ptr<TracedObject>> children;

  [[nodiscard]] std::set<std::string> AfterNames() const;
};
/// Shared, because an object can have several names.
using TracedPtr = std::shared_ptr<TracedObject>;

/// The spot `path` on the same side as `spot`.
[[nodiscard]] Spot At(const Spot& spot, std::string path);

/// Simulates the steps of a commit on names, to find where each object came
/// from. Does not access the base or the vault.
class StepTracer {
 public:
  StepTracer();

  /// Call it once.
  void Trace(const CommitSteps& steps);

  /// All objects that steps refer to, and their parents.
  [[nodiscard]] const std::vector<TracedPtr>& objects() const {
    return objects_;
  }
  /// New objects, and the objects that they replaced.
  [[nodiscard]] const std::map<const TracedObject*, TracedPtr>& replaced()
      const {
    return replaced_;
  }

 private:
  void Do(const CommitStep& step);
  void PairBySlot(const CommitStep& step, const TracedPtr& object);
  TracedPtr& Root(const Spot& spot);
  TracedPtr& Entry(const Spot& spot);
  /// The object at `spot`. `ino`, if not 0, identifies hard links of one
  /// object.
  TracedPtr Find(const Spot& spot, uint64_t ino);
  /// The object that was at `step.from` in the base and is gone; null if no
  /// other step refers to it.
  [[nodiscard]] TracedPtr Origin(const CommitStep& step) const;
  /// The object `name` in `parent`.
  TracedPtr Child(const TracedPtr& parent, const std::string& name,
                  uint64_t ino);
  static void Locate(TracedObject& top, const Spot& spot);

  TracedPtr base_ = std::make_shared<TracedObject>();
  std::map<std::string, TracedPtr> vaults_;  ///< by mount
  std::vector<TracedPtr> objects_;
  std::map<uint64_t, TracedPtr> by_ino_;
  std::map<std::string, TracedPtr> by_origin_;  ///< by path in the base
  std::map<const TracedObject*, TracedPtr> replaced_;
  std::map<std::string, TracedPtr> taken_out_;  ///< by slot
};

}  // namespace txfs

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

/// An object as the steps of a commit move it about.
struct TracedObject {
  Spot origin;                     ///< where it was before
  std::set<std::string> before;    ///< its names in the base before
  std::vector<Spot> after;         ///< and afterwards, of base and vault
  std::optional<Delta> old_bytes;  ///< of a patch
  std::optional<ObjectAttributes> set_before, set_after;
  /// Names in it that the steps looked at; null: taken away.
  std::map<std::string, std::shared_ptr<TracedObject>> children;

  [[nodiscard]] std::set<std::string> AfterNames() const;
};
/// Shared, for an object can have several names.
using TracedPtr = std::shared_ptr<TracedObject>;

/// `path` where `spot` is.
[[nodiscard]] Spot At(const Spot& spot, std::string path);

/// Goes through the steps of a commit with names only, to learn what came from
/// where. Touches nothing.
class StepTracer {
 public:
  StepTracer();

  /// Once.
  void Trace(const CommitSteps& steps);

  /// Every object that a step is about, but also parents of such.
  [[nodiscard]] const std::vector<TracedPtr>& objects() const {
    return objects_;
  }
  /// New content, and what it replaced.
  [[nodiscard]] const std::map<const TracedObject*, TracedPtr>& replaced()
      const {
    return replaced_;
  }

 private:
  void Do(const CommitStep& step);
  void PairBySlot(const CommitStep& step, const TracedPtr& object);
  TracedPtr& Root(const Spot& spot);
  TracedPtr& Entry(const Spot& spot);
  /// What stands there. `ino`, if it is not 0, tells names of one object.
  TracedPtr Find(const Spot& spot, uint64_t ino);
  /// What was at `step.from` in the base, and no longer is; null when no other
  /// step is about it.
  [[nodiscard]] TracedPtr Origin(const CommitStep& step) const;
  /// What has `name` in `parent`.
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

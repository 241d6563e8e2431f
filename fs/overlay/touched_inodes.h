#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// The inodes that operations changed since TouchWatches::Watch made it. The
/// lock of the tree guards it.
class TouchedInodes {
 public:
  [[nodiscard]] bool Has(Ino ino) const { return inos_.contains(ino); }

 private:
  friend class TouchWatches;
  std::unordered_set<Ino> inos_;
  uint64_t freezes_ = 0;   ///< how many had been counted
  bool may_move_ = false;  ///< an operation moved a directory: paths may differ
};

/// Tells each TouchedInodes that is in use what changes. The lock of the tree
/// guards it.
class TouchWatches {
 public:
  [[nodiscard]] std::shared_ptr<const TouchedInodes> Watch();
  /// Call before `change` is applied; it does no harm if it is not.
  void Note(const Change& change, bool moves_directories);
  /// What is done with everything frozen is not noted: it is counted, unless
  /// the tree stayed as it was.
  void CountFreeze() { ++freezes_; }
  void ForgetFreeze() { --freezes_; }
  /// In a freeze: whether `touched` has all that may have changed before it.
  [[nodiscard]] bool IsComplete(const TouchedInodes& touched) const {
    return !touched.may_move_ && freezes_ == touched.freezes_ + 1;
  }

 private:
  std::vector<std::weak_ptr<TouchedInodes>> watching_;
  uint64_t freezes_ = 0;
};

}  // namespace txfs

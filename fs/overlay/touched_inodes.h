#pragma once

#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "journal/change.h"
#include "journal/support/types.h"

namespace txfs {

/// Inodes that operations have changed for some time. The lock of the tree
/// guards it.
class TouchedInodes {
 public:
  [[nodiscard]] bool Has(Ino ino) const { return inos_.contains(ino); }

 private:
  friend class Watched;
  std::unordered_set<Ino> inos_;
  uint64_t freeze_ = 0;  ///< the one in which it was made
  bool all_ = false;     ///< directories were moved: paths may be others
};

/// Tells each TouchedInodes that is still in use what changes.
class Watched {
 public:
  /// Call with everything frozen.
  [[nodiscard]] std::shared_ptr<const TouchedInodes> Watch();
  /// Call when `change` is applied.
  void Note(const Change& change, bool moves_directories);
  /// Call when everything is frozen. What is done then is not noted.
  void NoteFreeze() { ++freezes_; }
  /// Whether nothing but what `touched` has can have changed since it was made,
  /// up to this freeze.
  [[nodiscard]] bool IsComplete(const TouchedInodes& touched) const {
    return !touched.all_ && freezes_ == touched.freeze_ + 1;
  }

 private:
  std::vector<std::weak_ptr<TouchedInodes>> watching_;
  uint64_t freezes_ = 0;
};

}  // namespace txfs

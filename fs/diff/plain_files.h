#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "fs/diff/change_list.h"
#include "fs/overlay/frozen.h"

namespace txfs {

class OverlayFilesystem;
class TouchedInodes;

/// A changed file of a single name that depends on no other change, and no
/// other change on it: one look at the base settles it. Either a file that the
/// base has exactly as noted, at the place where the overlay shows it, or a new
/// file where the base has nothing.
struct PlainFile {
  Ino ino = kNoIno;
  bool is_change = false;  ///< it is a net change that was only to be counted
  /// Null: it is no net change, or was only to be counted.
  std::unique_ptr<ChangeCandidate> candidate;
};

enum class Wanted { kNothing, kCount, kList };

/// Looks at the plain files while operations run, in parts. It holds the lock
/// of the tree for each part, shared, and not for the looks at the base.
class PlainSurvey {
 public:
  /// Makes the whole survey.
  PlainSurvey(OverlayFilesystem& filesystem, Wanted wanted);
  [[nodiscard]] Wanted wanted() const { return wanted_; }

 private:
  friend struct PlainFiles;
  const Wanted wanted_;
  std::shared_ptr<const TouchedInodes> touched_;
  std::vector<PlainFile> settled_;
};

/// The plain files of a frozen tree, and what is left. BaseFollower and
/// FindDrift find nothing at a plain file; what other programs changed there
/// since the look at it, the next look finds.
struct PlainFiles {
  uint64_t changes = 0;  ///< kCount: how many are known to be net changes
  /// kList: all that may be net changes; kCount: those of which only their
  /// content tells.
  ChangeList list;
  std::vector<Inode*> others;  ///< all other upper inodes
  std::vector<bool> is_plain;  ///< by Inode::upper_at

  static PlainFiles Find(Frozen& frozen, Wanted wanted);
  /// Takes from `survey` what did not change since. It is then used up.
  static PlainFiles Find(Frozen& frozen, PlainSurvey& survey);

 private:
  void Take(PlainFile file, size_t upper_at);
  void TakeSurveyed(const Frozen& frozen, const TouchedInodes& touched,
                    std::vector<PlainFile>& surveyed);
  void FindRest(Frozen& frozen, Wanted wanted);
};

/// The checksum of the content of `inode`, if all of it is one record.
[[nodiscard]] std::optional<uint64_t> WholeChecksum(const Inode& inode);
/// Whether the base file `origin` is known to have another checksum.
/// `preimages`: null if there are none.
[[nodiscard]] bool HasOtherChecksum(Preimages* preimages,
                                    const BaseOrigin& origin,
                                    uint64_t checksum);

}  // namespace txfs

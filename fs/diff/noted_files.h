#pragma once

#include <cstdint>
#include <vector>

#include "fs/overlay/frozen.h"

namespace txfs {

/// Changed files that the base has exactly as noted, at the place where the
/// overlay shows them. BaseFollower and FindDrift find nothing at such a file,
/// and in a ChangeList it depends on nothing else. So one look at each settles
/// it, and only the others need more.
struct NotedFiles {
  uint64_t changes = 0;        ///< how many of the files are net changes
  std::vector<Inode*> others;  ///< all other upper inodes

  /// Does not count the changes.
  static NotedFiles Find(Frozen& frozen);
  /// Only files of which it is known, without reading them, whether they are
  /// changes.
  static NotedFiles Count(Frozen& frozen);
};

/// Whether it is known without reading that the content of `inode`, which has a
/// base origin, differs from that of the base file as noted: all of it is one
/// record, with another checksum than the pre-image. `preimages`: null if there
/// are none.
[[nodiscard]] bool HasOtherChecksum(const Inode& inode, Preimages* preimages);

}  // namespace txfs

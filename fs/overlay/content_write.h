#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fs/tree/inode.h"
#include "journal/change.h"
#include "journal/journal.h"
#include "journal/support/types.h"

namespace txfs {

/// Where a write goes. `asked` is the offset in the request. `at` differs from
/// it only if the kernel has an outdated end of the file for an append.
struct WritePlace {
  uint64_t asked, at;
};

/// A write, and the state of its inode before the content is staged.
struct WriteLook {
  uint64_t name_changes = 0;  ///< Tree::name_changes at the verdict
  bool retired = false;       ///< its extents belong to an ended transaction
  uint64_t size = 0;          ///< of the content, bytes
  uint64_t promised = 0;      ///< bytes of it that a reservation has space for
  /// The base file that keeps some of the content; it must be readable.
  std::optional<BaseOrigin> kept;
  // Where the content goes in the spool.
  bool wants_segment = false;
  uint32_t segment = 0;  ///< 0: a new one
  uint64_t position = 0;
  StagedContent staged;
};

/// The base file of `inode` if its content is about to change for the first
/// time. Keep its pre-image after the change is accepted.
[[nodiscard]] std::optional<BaseOrigin> PreimageOf(const Inode& inode);

/// Releases the content of `extents`, which the change `lsn` took away.
void ReleaseAll(Journal& journal, const std::vector<Extent>& extents, Lsn lsn);

}  // namespace txfs

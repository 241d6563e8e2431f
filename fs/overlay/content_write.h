#pragma once

#include <cstdint>
#include <optional>

#include "journal/change.h"
#include "journal/journal.h"
#include "journal/support/types.h"

namespace txfs {

/// Where a write goes. `asked` for is another place than `at` only where the
/// kernel is mistaken about the end that it appends to.
struct WritePlace {
  uint64_t asked, at;
};

/// A write, and the state of its inode before its content is staged.
struct WriteLook {
  uint64_t name_changes = 0;  ///< Tree::name_changes at the verdict
  bool retired = false;       ///< its extents are of an ended transaction
  uint64_t size = 0;          ///< of the content, bytes
  /// The base file that keeps some of the content: it must be readable.
  std::optional<BaseOrigin> kept;
  // Where the content goes in the spool.
  bool wants_segment = false;
  uint32_t segment = 0;  ///< 0: a new one
  uint64_t position = 0;
  StagedContent staged;
};

}  // namespace txfs

#pragma once

#include <string>
#include <vector>

#include "fs/overlay.h"
#include "journal/base/result.h"

namespace txfs {

/// A path that changed in the base since the transaction first touched it.
struct Conflict {
  std::string path;    ///< in the base
  std::string reason;  ///< "changed", "deleted", "created"
};

/// A base path for people: the root has a name, too.
[[nodiscard]] std::string ShownPath(const std::string& path);

/// Base objects that are no longer what the transaction saw.
Result<std::vector<Conflict>> FindConflicts(OverlayFilesystem::Frozen& frozen);

}  // namespace txfs

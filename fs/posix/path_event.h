#pragma once

#include <cstddef>
#include <string>

#include "journal/support/types.h"

namespace txfs {

/// A path that shows another object or other content, although no process
/// changed it through the mount.
struct PathEvent {
  enum class Kind {
    kChanged,  ///< the path exists, as before
    kCame,
    kWent,
  };
  Kind kind = Kind::kChanged;
  Ino parent = kNoIno;
  std::string directory;  ///< path of `parent` in the mount; "": the root
  std::string name;       ///< "": the directory itself
  bool is_directory = false;

  bool operator==(const PathEvent&) const = default;
};

/// Of more changed paths only their directories have events.
inline constexpr size_t kMostPathEvents = 2000;

}  // namespace txfs

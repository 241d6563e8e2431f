#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "fs/commit/conflict.h"
#include "fs/overlay/frozen.h"
#include "journal/support/result.h"

namespace txfs {

/// What the base did to an object.
enum class TheirChange {
  kTouched,     ///< another object or other times, but the same in all else
  kAttributes,  ///< mode or owner
  kContent,     ///< bytes, symlink target; of a directory: it is another one
  kType,
  kDeleted,
  kCreated,  ///< a name that was free
};
/// What the transaction did to it.
enum class OurChange {
  kNothing,     ///< touched it, but it is equal
  kEntries,     ///< of a directory: names in it come or go
  kAttributes,  ///< mode, owner, times, user.* attributes
  kLinked,
  kRenamed,
  kModified,  ///< bytes
  kReplaced,  ///< something else has its name
  kDeleted,
  kCreated,
};

/// Something in the base that is no longer what the transaction saw.
struct Drift {
  std::string path;  ///< in the base
  TheirChange theirs = TheirChange::kTouched;
  OurChange ours = OurChange::kNothing;
  bool conflict = false;  ///< it takes somebody to say which side counts
  bool nameless = false;  ///< a file of several names: each known to lead to
                          ///< it is gone on one side, others may be left
  bool another = false;   ///< the base has there what is another inode of the
                          ///< transaction, by one of several names
  Ino ino = kNoIno;       ///< the inode with that base path; kCreated: none
  Ino at_path = kNoIno;   ///< kReplaced, kCreated: the inode that has the name
                          ///< in the overlay, if any
  struct stat now{};      ///< of the base object; not of kDeleted

  [[nodiscard]] Conflict Describe() const;
};

/// All drift under the transaction, by path. Looks at every object that was
/// touched, and at the content of those that seem to have changed if a
/// pre-image tells what it was.
Result<std::vector<Drift>> FindDrift(Frozen& frozen);

/// The conflicts among it.
[[nodiscard]] std::vector<Conflict> ConflictsIn(
    const std::vector<Drift>& drifts);

}  // namespace txfs

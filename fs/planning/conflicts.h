#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "fs/commit/conflict.h"
#include "fs/overlay/frozen.h"
#include "journal/support/result.h"

namespace txfs {

/// What happened to an object in the base.
enum class TheirChange {
  kTouched,     ///< another object or other times, but otherwise equal
  kAttributes,  ///< mode or owner
  kContent,     ///< bytes, symlink target; for a directory: it is another one
  kType,
  kDeleted,
  kCreated,  ///< a new name
};
/// What the transaction did to the object.
enum class OurChange {
  kNothing,     ///< touched it, but it is equal
  kEntries,     ///< directory: added or removed names
  kAttributes,  ///< mode, owner, times, user.* attributes
  kLinked,
  kRenamed,
  kModified,  ///< bytes
  kReplaced,  ///< another object has its name
  kDeleted,
  kCreated,
};

/// A difference between the base and what the transaction recorded of it.
struct Drift {
  std::string path;  ///< in the base
  TheirChange theirs = TheirChange::kTouched;
  OurChange ours = OurChange::kNothing;
  bool conflict = false;  ///< a user has to choose a side
  bool nameless = false;  ///< a file with several names: all known ones are
                          ///< gone on one side, others may exist
  bool another = false;   ///< the base has another inode of the transaction
                          ///< there, a file with several names
  Ino ino = kNoIno;       ///< the inode with this base path; kCreated: none
  Ino at_path = kNoIno;   ///< kReplaced, kCreated: the inode with this name in
                          ///< the overlay, if any
  struct stat now{};      ///< of the base object; unset for kDeleted

  [[nodiscard]] Conflict Describe() const;
};

/// All drift of the transaction, sorted by path. Checks every touched object;
/// reads the content of those that seem to have changed and have a pre-image.
/// Fails if this user may not look at one of them (EACCES); with `closed`,
/// appends it there instead. `among`: null, or PlainFiles::others.
Result<std::vector<Drift>> FindDrift(
    Frozen& frozen, std::vector<Conflict>* closed = nullptr,
    const std::vector<Inode*>* among = nullptr);

/// The conflicts among `drifts`.
[[nodiscard]] std::vector<Conflict> ConflictsIn(
    const std::vector<Drift>& drifts);

}  // namespace txfs

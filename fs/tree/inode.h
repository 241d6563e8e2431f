#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/tree/extent_map.h"
#include "journal/change.h"
#include "journal/journal.h"
#include "journal/support/types.h"

namespace txfs {

struct StringHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};

/// What a directory knows about a name.
struct Slot {
  DentryValue upper;    ///< the journal's word; absent: the base's counts
  Ino cached = kNoIno;  ///< base child looked up under this name, or none

  [[nodiscard]] bool IsUpper() const {
    return upper.kind != DentryKind::kAbsent;
  }
};

using SlotMap =
    std::unordered_map<std::string, Slot, StringHash, std::equal_to<>>;

/// An inode in memory. Pristine: a cache of a base object. Upper: it has a
/// record in the journal. Orphan: nlink 0, held by the kernel; what changes
/// about it stays in memory.
struct Inode {
  explicit Inode(Ino number) : ino(number) {}

  struct Link {
    Ino parent;
    std::string name;
    bool operator==(const Link&) const = default;
  };

  Ino ino;
  bool upper = false;
  size_t upper_at = 0;    ///< upper: its place among those of the tree
  uint32_t staying = 0;   ///< within Rebase: children that stay in place
  uint64_t stays_in = 0;  ///< the last Rebase in which it stayed itself
  /// Directory: the base has none at its path, but it is kept for what is upper
  /// in it. Upper file: the base has it not where it is noted, and if it had
  /// several names, by no other one that is known. The base may have it
  /// elsewhere, so its st_ino is one of its own.
  bool lost = false;
  bool sought = false;  ///< a file of several names to which no known one
                        ///< leads: in all of the base, since that was last
                        ///< heard to have changed
  InodeRecord record;
  ExtentMap extents;
  std::map<std::string, std::string, std::less<>> xattrs;
  SlotMap slots;
  std::vector<Link> links;              ///< known names
  std::optional<uint64_t> base_blocks;  ///< st_blocks of the base object, if
                                        ///< it is known
  uint64_t stored_bytes = 0;    ///< sum of the extents that are no holes
  uint64_t own_end = 0;         ///< own segment: first position never written
  uint64_t version = 0;         ///< directory: counts changes of names
  uint32_t upper_names = 0;     ///< slots of which the journal has a word
  uint32_t known_children = 0;  ///< links that name this inode as parent
  std::atomic<uint64_t> lookups = 0;  ///< the kernel's references
  /// Regular file the kernel holds: its size as far as the kernel knows.
  std::atomic<uint64_t> told_size = 0;
  /// Whether the kernel may have its attributes: it was told them, and did not
  /// write since, after which it asks for them anew.
  std::atomic<bool> attr_told = false;
  /// When it was last answered to a lookup, on the clock of LookupClock.
  std::atomic<uint64_t> looked_up = 0;
  uint64_t generation = 0;      ///< tells it from what the number meant before
  uint32_t orphan_segment = 0;  ///< orphan: where its later writes go, and
  uint64_t orphan_end = 0;      ///< how far that is written
  std::string last_path;        ///< orphan: where its last name was
  bool taken = false;           ///< orphan: not by us, the base has it no more
  SharedFd pinned_base;  ///< orphan: its base file, once commit moved it away
  std::shared_ptr<Journal> retired;  ///< orphan of an ended transaction: where
                                     ///< its extents are

  [[nodiscard]] Attr& attr() { return record.attr; }
  [[nodiscard]] const Attr& attr() const { return record.attr; }
  [[nodiscard]] bool IsDirectory() const {
    return record.attr.type == FileType::kDirectory;
  }
  [[nodiscard]] bool IsOrphan() const { return record.attr.nlink == 0; }
  /// Of an inode of base origin: takes its attributes to be what they were,
  /// but for the time of access.
  void RestoreAttr();
  /// Nothing of its content or its extended attributes is its own.
  void DropContent();
  /// What the journal has under `name`, a whiteout, too; nullptr: nothing.
  [[nodiscard]] const Slot* UpperSlot(std::string_view name) const;
  /// What is known under `name` of the base; nullptr: nothing, or the journal
  /// has something there.
  [[nodiscard]] const Slot* CachedSlot(std::string_view name) const;
  /// The same as a place among the slots; slots.end(): nothing.
  [[nodiscard]] SlotMap::const_iterator FindCached(std::string_view name) const;
  /// Of a regular file of base origin: whether its bytes may no longer be the
  /// base's.
  [[nodiscard]] bool ContentChanged() const;
  /// Of an inode of base origin: whether anything but its content and times is
  /// not what it was.
  [[nodiscard]] bool AttributesChanged() const;
  /// Of an inode of base origin: whether the transaction left its content, its
  /// attributes and its mtime as they were.
  [[nodiscard]] bool IsUnchanged() const;
};

/// Of a monotonic clock that is fast to read; milliseconds.
[[nodiscard]] uint64_t LookupClock();
/// Whether the kernel may still wait for the answer to a lookup of `inode`.
[[nodiscard]] bool MayBeInFlight(const Inode& inode, uint64_t now);

}  // namespace txfs

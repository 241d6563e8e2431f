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
#include "fs/tree/reservation.h"
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

/// A directory's entry for a name.
struct Slot {
  DentryValue upper;    ///< from the journal; absent: the base's name counts
  Ino cached = kNoIno;  ///< base child looked up under this name, or none

  [[nodiscard]] bool IsUpper() const {
    return upper.kind != DentryKind::kAbsent;
  }
};

using SlotMap =
    std::unordered_map<std::string, Slot, StringHash, std::equal_to<>>;

/// An inode in memory. Pristine: a cache of a base object. Upper: it has a
/// record in the journal. Orphan: link count 0, held by the kernel; its later
/// changes stay in memory.
struct Inode {
  explicit Inode(Ino own) : ino(own) {}

  struct Link {
    Ino parent;
    std::string name;
    bool operator==(const Link&) const = default;
  };

  Ino ino;
  /// st_ino, which never changes: a program that holds the inode compares it.
  uint64_t number = 0;
  bool upper = false;
  size_t upper_at = 0;    ///< upper: its index in Tree::upper
  uint32_t staying = 0;   ///< within Rebase: children that stay in place
  uint64_t stays_in = 0;  ///< the last Rebase in which it stayed itself
  /// The base object is not at its recorded path, nor under any other known
  /// name; it may exist elsewhere in the base. A lost directory is kept because
  /// it has upper entries.
  bool lost = false;
  bool sought = false;  ///< the whole base was searched for another name of
                        ///< this file since the base last changed
  InodeRecord record;
  ExtentMap extents;
  std::map<std::string, std::string, std::less<>> xattrs;
  SlotMap slots;
  std::vector<Link> links;              ///< known names
  std::optional<uint64_t> base_blocks;  ///< st_blocks in the base, if known
  uint64_t stored_bytes = 0;  ///< sum of the extents that are not holes
  std::unique_ptr<Reservation> reserved;  ///< null: none
  uint64_t own_end = 0;  ///< own segment: first position never written
  uint64_t version = 0;  ///< directory: counts changes of names
  Timestamp names_seen;  ///< directory: ctime of the base when its names were
                         ///< last looked at for what others made
  uint32_t upper_names = 0;           ///< slots with an entry in the journal
  uint32_t known_children = 0;        ///< links that name this inode as parent
  std::atomic<uint64_t> lookups = 0;  ///< the kernel's references
  /// Regular file held by the kernel: its size in the kernel's cache.
  std::atomic<uint64_t> told_size = 0;
  /// Whether the kernel may have cached the attributes: it received them and
  /// did not write since. After a write it asks again.
  std::atomic<bool> attr_told = false;
  /// The access control list that the kernel received (ToldAcl).
  std::atomic<uint64_t> told_acl = 0;
  /// Whether its first write found no attribute in the base that forbids it
  /// (LockCheck).
  std::atomic<bool> unlocked = false;
  /// Time of the last LOOKUP reply for it (Clock::Steady).
  std::atomic<uint64_t> looked_up = 0;
  uint64_t generation = 0;      ///< distinguishes reuses of the number
  uint32_t orphan_segment = 0;  ///< orphan: segment for its later writes
  uint64_t orphan_end = 0;      ///< orphan: end of the written part of it
  std::string last_path;        ///< orphan: path of its last name
  bool taken = false;           ///< orphan: another program removed its file
  /// Orphan that never had a name and may get one (O_TMPFILE): the filesystem
  /// of its directory (Tree::DeviceOf), and its mount (Crossings::MountOf).
  struct Place {
    uint64_t device;
    std::string mount;
  };
  std::optional<Place> unnamed;
  std::optional<Timestamp> born;  ///< new object, until a restart
  SharedFd pinned_base;  ///< orphan: the base file, before a commit moved it
  std::shared_ptr<Journal> retired;  ///< orphan: ended journal with its content

  [[nodiscard]] Attr& attr() { return record.attr; }
  [[nodiscard]] const Attr& attr() const { return record.attr; }
  [[nodiscard]] bool IsDirectory() const {
    return record.attr.type == FileType::kDirectory;
  }
  [[nodiscard]] bool IsOrphan() const { return record.attr.nlink == 0; }
  /// Restores the attributes of the base object, except atime. Requires base
  /// origin.
  void RestoreAttr();
  /// Drops the inode's own content and extended attributes.
  void DropContent();
  /// The upper slot of `name`, which may be a whiteout, or nullptr.
  [[nodiscard]] const Slot* UpperSlot(std::string_view name) const;
  /// The slot of the base name `name`, or nullptr if it is unknown or the
  /// journal has an entry for it.
  [[nodiscard]] const Slot* CachedSlot(std::string_view name) const;
  /// The position of CachedSlot in `slots`, or slots.end().
  [[nodiscard]] SlotMap::const_iterator FindCached(std::string_view name) const;
  /// Whether the content may differ from that of the base file. Requires base
  /// origin; false for other types.
  [[nodiscard]] bool ContentChanged() const;
  /// Whether mode, owner or extended attributes differ from those of the base
  /// object. Requires base origin.
  [[nodiscard]] bool AttributesChanged() const;
  /// Whether content, attributes and mtime are those of the base object.
  /// Requires base origin.
  [[nodiscard]] bool IsUnchanged() const;
};

/// Whether a LOOKUP reply for `inode` may still be in flight at `now`.
[[nodiscard]] bool MayBeInFlight(const Inode& inode, uint64_t now);

}  // namespace txfs

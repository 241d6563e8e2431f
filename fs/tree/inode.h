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
#include "fs/tree/compact_record.h"
#include "fs/tree/extent_map.h"
#include "fs/tree/links.h"
#include "fs/tree/pointer_table.h"
#include "fs/tree/reservation.h"
#include "fs/tree/sparse.h"
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

struct Inode;

/// A directory's entry for a name.
struct Slot {
  DentryValue upper;  ///< from the journal; absent: the base's name counts
  Inode* cached = nullptr;  ///< base child looked up under this name, or none

  [[nodiscard]] bool IsUpper() const {
    return upper.kind != DentryKind::kAbsent;
  }
};

using SlotMap =
    std::unordered_map<std::string, Slot, StringHash, std::equal_to<>>;

/// Inodes by their first known name.
struct ByFirstName {
  static std::string_view Of(const Inode& inode);
  static uint64_t Hash(std::string_view name) { return StringHash{}(name); }
};

/// An inode in memory. Pristine: a cache of a base object. Upper: it has a
/// record in the journal. Orphan: link count 0, held by the kernel; its later
/// changes stay in memory.
struct Inode {
  explicit Inode(Ino given) : ino(given) {}

  using Link = txfs::Link;

  /// What an inode has that is not as in the base, or has no base.
  struct Own {
    Sparse<std::map<std::string, std::string, std::less<>>> xattrs;
    std::unique_ptr<Reservation> reserved;  ///< null: none
    uint64_t stored_bytes = 0;  ///< sum of the extents that are not holes
    uint64_t own_end = 0;       ///< own segment: first position never written
    Sparse<std::optional<Timestamp>> born;  ///< new object, until a restart
  };

  /// What only orphans have.
  struct Orphan {
    std::string last_path;  ///< path of its last name
    /// Of one that never had a name and may get one (O_TMPFILE): the filesystem
    /// of its directory (Tree::DeviceOf), and its mount (Crossings::MountOf).
    struct Place {
      uint64_t device;
      std::string mount;
    };
    std::optional<Place> unnamed;
    SharedFd pinned_base;  ///< the base file, before a commit moved it
    std::shared_ptr<Journal> retired;  ///< ended journal with its content
    uint64_t end = 0;                  ///< end of the written part of `segment`
    uint32_t segment = 0;              ///< for its later writes
    bool taken = false;                ///< another program removed its file
  };

  /// What only directories have.
  struct Names {
    SlotMap slots;  ///< all that `cached` does not have
    /// The base children whose first known name (Links::front) is the one
    /// looked up here: by far the most. A slot would take ten times as much.
    PointerTable<Inode, ByFirstName> cached;
    uint64_t version = 0;     ///< counts changes of names
    uint64_t generation = 0;  ///< distinguishes reuses of the number
    Timestamp seen;  ///< ctime of the base when its names were last looked at
                     ///< for what others made
    uint32_t upper = 0;     ///< slots with an entry in the journal
    uint32_t children = 0;  ///< links that name this inode as parent
    uint32_t staying = 0;   ///< within Rebase: children that stay in place
  };

  static constexpr uint64_t kUnknownBlocks = UINT64_MAX;

  Ino ino;
  /// st_ino, which never changes: a program that holds the inode compares it.
  uint64_t number = 0;
  CompactRecord record;
  Links links;
  uint64_t base_blocks = kUnknownBlocks;  ///< st_blocks in the base
  ExtentMap extents;
  Sparse<Own> own;
  Sparse<Orphan> orphan;
  Sparse<Names> names;
  std::atomic<uint64_t> lookups = 0;  ///< the kernel's references
  /// Regular file held by the kernel: its size in the kernel's cache.
  std::atomic<uint64_t> told_size = 0;
  /// The access control list that the kernel received (ToldAcl).
  std::atomic<uint64_t> told_acl = 0;
  /// Time of the last LOOKUP reply for it (Clock::Steady).
  std::atomic<uint64_t> looked_up = 0;
  uint32_t upper_at = 0;  ///< upper: its index in Tree::upper
  uint32_t stays_in = 0;  ///< the last Rebase in which it stayed in place
  /// Whether the kernel may have cached the attributes: it received them and
  /// did not write since. After a write it asks again.
  std::atomic<bool> attr_told = false;
  /// Whether its first write found no attribute in the base that forbids it
  /// (LockCheck).
  std::atomic<bool> unlocked = false;
  bool upper = false;
  bool indexed = false;  ///< file: Tree finds it by its base origin
  /// The base object is not at its recorded path, nor under any other known
  /// name; it may exist elsewhere in the base. A lost directory is kept because
  /// it has upper entries.
  bool lost = false;
  bool sought = false;  ///< the whole base was searched for another name of
                        ///< this file since the base last changed

  [[nodiscard]] Attr attr() const { return record.attr(); }
  [[nodiscard]] bool IsDirectory() const { return record.IsDirectory(); }
  [[nodiscard]] bool IsOrphan() const { return record.nlink() == 0; }
  void MakeOrphan();
  /// Drops the inode's own content and extended attributes.
  void DropContent();
  /// The upper slot of `name`, which may be a whiteout, or nullptr.
  [[nodiscard]] const Slot* UpperSlot(std::string_view name) const;
  /// The child known under the base name `name`; nullptr: none, or the journal
  /// has an entry for the name.
  [[nodiscard]] Inode* CachedChild(std::string_view name) const;
  /// Whether the journal has an entry for `name`, or a child is cached there.
  [[nodiscard]] bool Knows(std::string_view name) const;
  /// Calls `visit(name, child)` for each CachedChild. It must not change names.
  void ForEachCached(
      const std::function<void(const std::string&, Inode&)>& visit) const;
  /// Makes `child`, which has a link with this name, the CachedChild. There
  /// must be none.
  void Cache(std::string_view name, Inode& child);
  /// Forgets the CachedChild, if there is one; its link stays.
  void Uncache(std::string_view name);
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

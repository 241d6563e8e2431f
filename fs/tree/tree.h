#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/tree/base_object.h"
#include "fs/tree/extent_map.h"
#include "fs/tree/inode.h"
#include "fs/tree/inode_tables.h"
#include "journal/change.h"
#include "journal/image.h"
#include "journal/journal.h"
#include "journal/rewind.h"
#include "journal/support/types.h"

namespace txfs {

/// Bit in st_ino of inodes that the base does not have.
inline constexpr uint64_t kNewInodeBit = uint64_t{1} << 52;
/// Bit, with kNewInodeBit, in st_ino of an inode whose number in the base is
/// that of another inode here.
inline constexpr uint64_t kOtherInodeBit = uint64_t{1} << 51;

/// A base directory that the transaction shows at another path.
struct MovedDirectory {
  std::string base_path, path;
};

/// Paths of the directories that were requested last. In a walk of all
/// directories, parents first, it saves the walk to the root for each. Valid
/// for one value of `counts` and until a name changes.
class PathMemo {
 public:
  /// nullptr: not remembered.
  [[nodiscard]] const std::string* Find(Ino directory) const;
  void Add(Ino directory, const std::string& path);

 private:
  static constexpr size_t kKept = 16;
  std::vector<std::pair<Ino, std::string>> recent_;
  size_t next_ = 0;  ///< index of the oldest, once all places are taken
};

/// The inodes and dentries of the overlay in memory. It applies changes (State)
/// and answers requests. Not thread-safe: the tree lock of Filesystem guards
/// it.
class Tree final : public State {
 public:
  /// `root`: the base's root directory; `base_device` its st_dev.
  Tree(const struct stat& root, uint64_t base_device);
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  // State: the only way to change anything that the journal records.
  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override;
  void SetAttr(Ino ino, const Attr& attr) override;
  void SetDentry(Ino parent, const std::string& name,
                 const DentryValue& value) override;
  void EraseExtent(Ino ino, const Extent& extent) override;
  void PutExtent(Ino ino, const Extent& extent) override;
  void SetXattr(Ino ino, const std::string& name,
                const std::optional<std::string>& value) override;
  /// The same for all rows of `image`.
  void Load(Image image);

  /// Replaces extents of an orphan, which the setters of State leave alone.
  static void ReplaceExtents(Inode& inode, const ExtentEdit& edit);

  [[nodiscard]] Inode* Find(Ino ino);
  [[nodiscard]] const Inode* Find(Ino ino) const;
  [[nodiscard]] Inode& root() { return *Find(kRootIno); }

  /// The child known under `name`: upper or cached. nullptr: hidden, or not
  /// known yet (IsDecided tells which).
  [[nodiscard]] Inode* FindChild(const Inode& directory,
                                 std::string_view name) const;
  /// Calls `visit(name, child)` for each FindChild. It must not change names.
  void ForEachChild(
      const Inode& directory,
      const std::function<void(const std::string&, const Inode&)>& visit) const;
  /// Whether the answer of FindChild is final without asking the base.
  [[nodiscard]] static bool IsDecided(const Inode& directory,
                                      std::string_view name);

  /// Enters a base object under (directory, name). Returns its inode if it has
  /// one, or a new pristine one.
  Inode& AdoptBase(Inode& directory, std::string_view name,
                   const BaseObject& object);

  /// Whether (directory, name) shows a changed file instead of the base object
  /// of `st`, which another program put there.
  [[nodiscard]] bool IsOursAt(const Inode& directory, std::string_view name,
                              const struct stat& st) const;

  /// Makes the base name (directory, name), which has no upper entry, lead to
  /// `child`.
  void Cache(Inode& directory, std::string_view name, Inode& child);
  /// Cache that first drops another inode known there. Returns false if that
  /// one is held, upper or a directory.
  bool ShowAt(Inode& directory, std::string_view name, Inode& child);

  [[nodiscard]] Ino AllocateIno() { return Ino{next_ino_++}; }

  /// The recorded state of the base object that has `st`.
  [[nodiscard]] BaseOrigin OriginOf(const std::string& path,
                                    const struct stat& st) const;
  /// The record of an unchanged base object.
  [[nodiscard]] InodeRecord RecordOf(const BaseObject& object) const;

  /// Path of a known name of `inode` from the root. For an orphan its last
  /// path; for an inode without known names its recorded path.
  [[nodiscard]] std::string PathOf(const Inode& inode) const;
  [[nodiscard]] std::string PathOf(const Inode& directory,
                                   std::string_view name) const;

  /// Whether `inode` is `ancestor` or below it.
  [[nodiscard]] bool IsBelow(const Inode& inode, Ino ancestor) const;

  /// The device of the base filesystem that has `directory`, or will have it
  /// after a commit; 0: that of the root.
  [[nodiscard]] uint64_t DeviceOf(const Inode& directory) const;

  /// Gives back lookups of the kernel and frees inodes without references.
  /// Returns the extents of an orphan that lost its last reference, and its
  /// journal in `*retired` if that transaction ended.
  std::vector<Extent> Forget(Ino ino, uint64_t lookups,
                             std::shared_ptr<Journal>* retired);

  /// The upper slot of the base name `path`; null: none, or the directory is
  /// not in memory.
  [[nodiscard]] const Slot* SlotAt(std::string_view path) const;
  /// Number of names of `inode` that the transaction made.
  [[nodiscard]] uint32_t UpperNames(const Inode& inode) const;

  /// The directory with base path `path`, if it is in memory.
  [[nodiscard]] Inode* FindBaseDirectory(std::string_view path);
  [[nodiscard]] const Inode* FindBaseDirectory(std::string_view path) const;
  /// The inode of the base file `path` with `st`, if it is in memory. Excludes
  /// inodes of a former file with the same number. Of several inodes for this
  /// file it prefers one that is neither orphan nor lost.
  [[nodiscard]] Inode* FindBaseFile(const std::string& path,
                                    const struct stat& st);

  void ForEach(const std::function<void(Inode&)>& visit);
  /// ForEach for upper inodes only; its cost does not depend on the others.
  /// `visit` must not make an inode upper or pristine.
  void ForEachUpper(const std::function<void(Inode&)>& visit);

  [[nodiscard]] const std::vector<Inode*>& upper() const { return upper_; }

  /// Base directories that were moved themselves, not only a directory above
  /// them.
  [[nodiscard]] std::vector<MovedDirectory> MovedDirectories() const;

  /// Selects the upper names that count; at the others the base's names are
  /// visible. Empty: all count.
  using Counts = std::function<bool(const Inode& directory, std::string_view)>;
  /// The overlay path of the base path `path`; none: hidden.
  [[nodiscard]] std::optional<std::string> VisibleBase(
      const std::string& path, const Counts& counts = {}) const;
  /// One overlay path of `inode`. None for an orphan, unless its removal does
  /// not count.
  [[nodiscard]] std::optional<std::string> VisiblePath(
      const Inode& inode, const Counts& counts = {},
      PathMemo* memo = nullptr) const;
  /// Whether `inode`, of base origin, has only its base name and no rename
  /// moved it. A comparison of paths is not enough: a directory has its old
  /// path again after a move into the replacement of its parent.
  [[nodiscard]] bool IsAtItsPlace(const Inode& inode) const;
  /// Whether `inode` is an upper file without changes, except for atime.
  [[nodiscard]] bool IsAsItWas(const Inode& inode) const;
  /// Whether a different inode represents the base object `path`.
  [[nodiscard]] bool IsAnother(const Inode& inode, const std::string& path,
                               const struct stat& st);
  /// The base path of a name that has no upper entry.
  [[nodiscard]] std::optional<std::string> BasePathOf(
      const Inode::Link& link) const;
  /// All known paths of `inode`. Hard links of the base that the kernel never
  /// looked up are missing.
  [[nodiscard]] std::vector<std::string> VisiblePaths(
      const Inode& inode, PathMemo* memo = nullptr) const;

  /// Base paths of the known names of `inode` that have no upper entry: the
  /// kernel may have cached them. If there are none, its recorded path.
  [[nodiscard]] std::vector<std::string> KnownBasePaths(
      const Inode& inode) const;

  /// Prepares `inode` for the Rebase that must follow: restores its state from
  /// before the transaction and keeps its place. Returns false, without effect,
  /// unless it is no directory, has only its base names, and the kernel holds
  /// their directories.
  bool StayInPlace(Inode& inode);
  /// An inode of this tree has a reservation.
  void NoteReservation() { has_had_reservations_ = true; }

  /// What Rebase took out of the tree.
  struct Dropped {
    std::vector<ExtentMap> extents;  ///< of inodes that StayInPlace restored
    std::vector<std::unique_ptr<Inode>> inodes;
  };
  /// There may be many: free them without a lock.
  [[nodiscard]] Dropped TakeDropped() { return std::exchange(dropped_, {}); }

  /// The place of a held inode in the base after a transaction.
  struct Survivor {
    Ino ino = kNoIno;
    /// All base paths that the kernel may know; none: an orphan.
    std::vector<std::string> paths;
    bool unchanged = false;     ///< keeps its attributes without a look
    bool as_before = false;     ///< gets back its recorded attributes
    bool stays_orphan = false;  ///< remains an orphan with its content
    std::vector<Inode::Link> links = {};  ///< within Rebase: former names
    std::string last_path = {};  ///< within Rebase: former path of a new inode
  };
  struct Rebased {
    std::vector<Inode::Link> went;  ///< names that no longer lead to a survivor
    std::vector<Ino> moved;         ///< survivors that have a new name
  };
  using Look = std::function<std::optional<BaseObject>(const std::string&)>;
  /// Links each upper inode of base origin without a name at its recorded path,
  /// whatever the base has there now. `look` finds the directories on the way;
  /// missing ones become lost.
  void RelinkUpper(const Look& look);
  /// RelinkUpper for one inode. The inode stays without a name if its name has
  /// an upper entry.
  void Relink(Inode& inode, const Look& look);
  /// Whether `inode` has base origin and is not deleted, but has no known name.
  [[nodiscard]] static bool LacksName(const Inode& inode);
  /// Whether the recorded path of an upper inode leads to another inode, so
  /// that no path reaches it.
  [[nodiscard]] bool IsShadowed(const Inode& inode) const;
  /// Ends a transaction: drops every inode except `survivors`, which include
  /// the root, and those that stay in place. A survivor becomes pristine at the
  /// path where `look` finds it, or an orphan with its content in `old`.
  Rebased Rebase(std::vector<Survivor> survivors, const Look& look,
                 const std::shared_ptr<Journal>& old) {
    return Rebase(std::move(survivors), look, old, Image());
  }
  /// Rebase after a part of a transaction ended: `rest` is the rest of the
  /// journal. Orphans with their content in it do not need `old`.
  Rebased Rebase(std::vector<Survivor> survivors, const Look& look,
                 const std::shared_ptr<Journal>& old, const Image& rest);

  // Changes of the base in an open transaction: tree_refresh.cc.
  /// Gives a pristine inode the record of `object`.
  void Revise(Inode& inode, const BaseObject& object);
  /// Whether Revise would change more than atime.
  [[nodiscard]] bool Differs(const Inode& inode,
                             const BaseObject& object) const;
  /// Whether `st` is of the base object that `inode` has as origin.
  [[nodiscard]] bool IsOrigin(const Inode& inode, const struct stat& st) const;
  /// Drops the base name `name` of a pristine child that the base deleted or
  /// replaced. A child without names becomes an orphan while the kernel holds
  /// it; otherwise it is freed.
  void DropCached(Inode& directory, const std::string& name);
  /// DropCached for a name of `child`, even if another inode is known there. An
  /// upper child stays without a name.
  void DropLink(Inode& child, const Inode::Link& link);
  /// Frees pristine inodes without lookups and without known children.
  void DropUnheld();
  /// Sets Inode::lost. If that changes it, adds the inode to `stale`: the
  /// kernel may have its names or content from before.
  static void SetLost(Inode& inode, bool lost, std::vector<Ino>& stale);

  struct WentBack {
    std::vector<Inode*> changed;   ///< differ from the state at the savepoint
    std::vector<Ino> gone;         ///< differ, and are no longer in memory
    std::vector<Extent> kept;      ///< of new orphans: still alive
    std::vector<Extent> given_up;  ///< of orphans that returned: dead
  };
  /// Undoes `rewind`. A held inode that was made since becomes an orphan with
  /// its content. An orphan that had a name then becomes the same inode with
  /// its former content.
  WentBack GoBack(const Rewind& rewind);
  /// Marks the numbers up to `ino` as used.
  void ReserveInos(Ino ino) { next_ino_ = std::max(next_ino_, Raw(ino) + 1); }

  /// The attributes for stat(2).
  [[nodiscard]] static struct stat StatOf(const Inode& inode);
  /// The inode number of the base entry `entry` of `directory`, which is not in
  /// memory under this name: the one that a lookup would give it.
  [[nodiscard]] uint64_t NumberOf(const Inode& directory,
                                  const BaseEntry& entry) const;

  [[nodiscard]] size_t size() const { return inodes_.size(); }

  /// Counts changes of names and records. While it is constant, paths and the
  /// view of the rules are too.
  [[nodiscard]] uint64_t name_changes() const { return name_changes_; }

 private:
  std::vector<const Inode::Link*> WaysUp(const Inode& inode,
                                         const Counts& counts) const;
  std::optional<std::string> FirstPath(
      const Inode& inode, const std::vector<const Inode::Link*>& ways,
      const Counts& counts, PathMemo* memo) const;
  std::optional<std::string> PathByBase(const Inode& inode,
                                        const Counts& counts) const;
  /// What a base file is identified by.
  struct BaseFile {
    BaseKey key;
    FileType type;
    bool has_others;  ///< hard links
  };

  Inode& Obtain(Ino ino);
  void SetUpper(Inode& inode, bool upper);
  static void ReviveOrphan(Inode& inode, WentBack& went);
  void NoteLastPaths(const Rewind& rewind);
  void GoBackInode(const Rewind::PastInode& past, WentBack& went);
  static void GoBackExtents(Inode& inode, const Rewind::PastInode& past);
  void RelinkBase(Inode& inode);
  void RelinkBase(Inode& inode, const std::string& path);
  /// Replacement for a directory that the base no longer has.
  enum class Missing { kNone, kLostOne };
  Inode* ObtainBaseDirectory(const std::string& path, const Look& look,
                             Missing missing);
  void StripDirectory(Inode& directory);
  void DropAllBut(const std::vector<Survivor>& survivors);
  void Drop(Ino ino);
  void StripSurvivors(std::vector<Survivor>& survivors);
  void LoadRest(const Image& rest, const std::set<Ino>& orphans);
  bool PlaceSurvivor(const Survivor& survivor, Inode& inode, const Look& look);
  void AddLink(Inode& child, Ino parent, std::string_view name);
  void RemoveLink(Inode& child, Ino parent, std::string_view name);
  void SetRecord(Inode& inode, InodeRecord record);
  [[nodiscard]] const Inode* FindBaseFile(std::string_view path,
                                          const BaseFile& file) const;
  void Number(Inode& inode);
  void DropNumber(const Inode& inode);
  [[nodiscard]] static bool HasOtherNumber(const Inode& inode);
  void KeepNumber(const Inode& inode, Inode& parent);
  [[nodiscard]] uint64_t FreeNumber(BaseKey object) const;
  [[nodiscard]] uint64_t ToldNumber(BaseKey object) const;
  [[nodiscard]] bool IsFormer(const Inode& orphan, BaseKey object) const;
  /// Before the origin of `inode` changes, UnindexBase must be called.
  void IndexBase(Inode& inode);
  void UnindexBase(Inode& inode);
  void MaybeEvict(Ino ino);
  [[nodiscard]] uint64_t RelativeDevice(uint64_t dev) const {
    return dev == base_device_ ? 0 : dev;
  }

  uint64_t base_device_;
  uint64_t next_ino_ = Raw(kRootIno) + 1;
  uint64_t name_changes_ = 0;
  uint32_t rebases_ = 1;  ///< number of the next Rebase
  size_t staying_ = 0;    ///< inodes that stay in place in it
  InodePages inodes_;
  std::vector<Inode*> upper_;  ///< in no order
  Dropped dropped_;
  bool has_had_reservations_ = false;  ///< usually not: saves looks at `own`
  PointerTable<Inode, ByNumber> numbers_;
  mutable std::mutex told_mutex_;  ///< lists are made side by side
  /// Numbers that lists showed in place of the objects' own.
  mutable std::map<BaseKey, uint64_t> told_numbers_;
  mutable std::atomic<bool> told_any_ = false;  ///< usually not: skips the lock
  /// Several for one key if other programs replaced a base object.
  PointerTable<Inode, ByBase> base_files_;
  std::unordered_map<std::string, Ino, StringHash, std::equal_to<>>
      base_directories_;
};

/// FindObject on `base`, which must outlive the result. Errors count as none.
[[nodiscard]] Tree::Look LookAt(const BaseDirectory& base);

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
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
#include "journal/change.h"
#include "journal/image.h"
#include "journal/journal.h"
#include "journal/rewind.h"
#include "journal/support/types.h"

namespace txfs {

/// Set in st_ino of what the base does not have.
inline constexpr uint64_t kNewInodeBit = uint64_t{1} << 52;

/// A directory of the base that the transaction shows elsewhere.
struct MovedDirectory {
  std::string base_path, path;
};

/// Paths of the directories that were asked for last: with it, those of all
/// directories of a deep tree, parents first, take no walk to the root each.
/// For one value of `counts`, and as long as no name changes.
class PathMemo {
 public:
  /// nullptr: it is not among them.
  [[nodiscard]] const std::string* Find(Ino directory) const;
  void Add(Ino directory, const std::string& path);

 private:
  static constexpr size_t kKept = 16;
  std::vector<std::pair<Ino, std::string>> recent_;
  size_t next_ = 0;  ///< the oldest, when all places are taken
};

/// The overlay's inodes and dentries in memory; the State that answers every
/// request. Not thread-safe: Filesystem's tree lock guards it.
class Tree final : public State {
 public:
  /// `root`: the base's root directory; `base_device` its st_dev.
  Tree(const struct stat& root, uint64_t base_device);

  // State: the one way to change anything that the journal knows.
  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override;
  void SetAttr(Ino ino, const Attr& attr) override;
  void SetDentry(Ino parent, const std::string& name,
                 const DentryValue& value) override;
  void EraseExtent(Ino ino, const Extent& extent) override;
  void PutExtent(Ino ino, const Extent& extent) override;
  void SetXattr(Ino ino, const std::string& name,
                const std::optional<std::string>& value) override;

  /// Replaces extents of an orphan, which State's setters leave alone.
  static void ReplaceExtents(Inode& inode, const ExtentEdit& edit);

  [[nodiscard]] Inode* Find(Ino ino);
  [[nodiscard]] const Inode* Find(Ino ino) const;
  [[nodiscard]] Inode& root() { return *Find(kRootIno); }

  /// The child known under `name`: upper or cached. nullptr: hidden, or not
  /// known yet (IsDecided tells which).
  [[nodiscard]] Inode* FindChild(const Inode& directory, std::string_view name);
  /// Whether the answer of FindChild is final without asking the base.
  [[nodiscard]] static bool IsDecided(const Inode& directory,
                                      std::string_view name);

  /// Enters a base object under (directory, name) as a pristine inode, or
  /// finds the inode it already is.
  Inode& AdoptBase(Inode& directory, std::string_view name,
                   const BaseObject& object);

  /// Whether a changed file is known there, which hides the base object of `st`
  /// that others put in its place.
  [[nodiscard]] bool IsOursAt(const Inode& directory, std::string_view name,
                              const struct stat& st) const;

  /// Lets (directory, name), of which the upper says nothing, lead to `child`.
  void Cache(Inode& directory, std::string_view name, Inode& child);
  /// The same where another base object may be known. Returns false if somebody
  /// holds that one.
  bool ShowAt(Inode& directory, std::string_view name, Inode& child);

  [[nodiscard]] Ino AllocateIno() { return Ino{next_ino_++}; }

  /// What a record says of a base object that it comes from.
  [[nodiscard]] BaseOrigin OriginOf(const std::string& path,
                                    const struct stat& st) const;
  /// The record of a base object that nobody changed.
  [[nodiscard]] InodeRecord RecordOf(const BaseObject& object) const;

  /// Path of a known name of `inode` from the root; the last known for an
  /// orphan or an upper inode whose directories were not looked up yet.
  [[nodiscard]] std::string PathOf(const Inode& inode) const;
  [[nodiscard]] std::string PathOf(const Inode& directory,
                                   std::string_view name) const;

  /// Whether `inode` is `ancestor` or below it.
  [[nodiscard]] bool IsBelow(const Inode& inode, Ino ancestor) const;

  /// The filesystem of the base that `directory` is on, or that a new one will
  /// be on: its device, 0 for that of the root.
  [[nodiscard]] uint64_t DeviceOf(const Inode& directory) const;

  /// The kernel gave back lookups; frees what nobody needs. Returns the inode's
  /// extents when it was an orphan that is gone now.
  std::vector<Extent> Forget(Ino ino, uint64_t lookups,
                             std::shared_ptr<Journal>* retired);

  /// What the journal has in the place of the base's name `path`; null:
  /// nothing, or the directory is not in memory.
  [[nodiscard]] const Slot* SlotAt(std::string_view path) const;
  /// Names of `inode` that the transaction made.
  [[nodiscard]] uint32_t UpperNames(const Inode& inode) const;

  /// The directory of base path `path`, if it is in memory.
  [[nodiscard]] Inode* FindBaseDirectory(std::string_view path);
  [[nodiscard]] const Inode* FindBaseDirectory(std::string_view path) const;
  /// The inode of base object `path`, which is no directory, if it is in
  /// memory: not one that had the same inode number before, and of several that
  /// were that object the one that still is.
  [[nodiscard]] Inode* FindBaseFile(const std::string& path,
                                    const struct stat& st);

  void ForEach(const std::function<void(Inode&)>& visit);
  /// The same for upper inodes only, however many others there are. `visit`
  /// must not make any of them pristine, or the reverse.
  void ForEachUpper(const std::function<void(Inode&)>& visit);

  [[nodiscard]] const std::vector<Inode*>& upper() const { return upper_; }

  /// Directories of the base that have another place of their own, and not with
  /// a directory above them.
  [[nodiscard]] std::vector<MovedDirectory> MovedDirectories() const;

  /// Which names of the journal count; where the others are, the base has what
  /// it has. Empty: all of them.
  using Counts = std::function<bool(const Inode& directory, std::string_view)>;
  /// The base name `path` as the overlay shows it: its path there, or nothing
  /// when it is hidden.
  [[nodiscard]] std::optional<std::string> VisibleBase(
      const std::string& path, const Counts& counts = {}) const;
  /// A path under which `inode` can be reached; nothing for an orphan, unless
  /// its removal does not count.
  [[nodiscard]] std::optional<std::string> VisiblePath(
      const Inode& inode, const Counts& counts = {},
      PathMemo* memo = nullptr) const;
  /// Whether `inode`, of the base, is under the name that the base has for it,
  /// and under no other, by no change of a name. A path does not tell: that of
  /// a directory is what it was, too, when it moved into what took the place of
  /// the one above it.
  [[nodiscard]] bool IsAtItsPlace(const Inode& inode) const;
  /// Whether `inode` is a file that the transaction touched, and left as it
  /// was: it is no change, but for its time of access.
  [[nodiscard]] bool IsAsItWas(const Inode& inode) const;
  /// Whether another inode than `inode` is the base object `path`.
  [[nodiscard]] bool IsAnother(const Inode& inode, const std::string& path,
                               const struct stat& st);
  /// Where the base has a name of which the journal has no word.
  [[nodiscard]] std::optional<std::string> BasePathOf(
      const Inode::Link& link) const;
  /// All paths of `inode` that are known: hard links of the base that nobody
  /// looked up are not.
  [[nodiscard]] std::vector<std::string> VisiblePaths(
      const Inode& inode, PathMemo* memo = nullptr) const;

  /// Base paths of the names of `inode` that were looked up and of which the
  /// journal has no word: the kernel may have them cached. Where there is none,
  /// the path of the base object that it was made from, if any.
  [[nodiscard]] std::vector<std::string> KnownBasePaths(
      const Inode& inode) const;

  /// If `inode` is no directory, is where the base has it by all its known
  /// names, and the kernel holds their directories: makes it what it was before
  /// the transaction, lets it keep its place in the Rebase that must follow,
  /// and returns true.
  bool StayInPlace(Inode& inode);
  /// The extents that those had: to be freed when nobody waits.
  [[nodiscard]] std::vector<ExtentMap> TakeDropped() {
    return std::exchange(dropped_, {});
  }

  /// Where a held inode is to be found in the base from now on.
  struct Survivor {
    Ino ino = kNoIno;
    /// Base paths, all that the kernel may know of; empty: an orphan.
    std::vector<std::string> paths;
    bool unchanged = false;     ///< its attributes need no new look
    bool as_before = false;     ///< it is what it was when it was first changed
    bool stays_orphan = false;  ///< with all it has
    std::vector<Inode::Link> links = {};  ///< within Rebase: what it had
    std::string last_path = {};           ///< and where it was, if it is new
  };
  struct Rebased {
    std::vector<Inode::Link> went;  ///< names that lead to a survivor no more
    std::vector<Ino> moved;         ///< survivors that have come to another one
  };
  using Look = std::function<std::optional<BaseObject>(const std::string&)>;
  /// Lets every upper inode of base origin that no name leads to have the one
  /// that the base had for it, whatever that has there now. Directories on the
  /// way are what `look` finds, or lost.
  void RelinkUpper(const Look& look);
  /// The same for one; none if the journal has a word about the name.
  void Relink(Inode& inode, const Look& look);
  /// Whether no name is known of something that the base had, and that is not
  /// deleted.
  [[nodiscard]] static bool LacksName(const Inode& inode);
  /// Whether the name of an upper inode leads to another one, so that nobody
  /// can reach it.
  [[nodiscard]] bool IsShadowed(const Inode& inode) const;
  /// A transaction ended: drops every inode but `survivors` (the root among
  /// them) and those that stay in place, and makes those pristine at their
  /// paths as `look` finds them, or orphans whose content is in `old`.
  Rebased Rebase(std::vector<Survivor> survivors, const Look& look,
                 const std::shared_ptr<Journal>& old) {
    return Rebase(std::move(survivors), look, old, Image());
  }
  /// The same when a part of it ended: `rest` is what the journal has still.
  /// Orphans whose content is in it need no `old`.
  Rebased Rebase(std::vector<Survivor> survivors, const Look& look,
                 const std::shared_ptr<Journal>& old, const Image& rest);

  // The base changed under an open transaction (overlay_refresh.cc).
  /// Makes a pristine inode what `object` is, whatever it was before.
  void Revise(Inode& inode, const BaseObject& object);
  /// Whether Revise would change `inode` in more than its time of access.
  [[nodiscard]] bool Differs(const Inode& inode,
                             const BaseObject& object) const;
  /// Whether `st` is of the base object that `inode` is or was made of.
  [[nodiscard]] bool IsOrigin(const Inode& inode, const struct stat& st) const;
  /// The base has no `name` any more, or something else under it: forgets the
  /// pristine child that was known there. With its last name gone it is an
  /// orphan while the kernel holds it, and freed otherwise.
  void DropCached(Inode& directory, const std::string& name);
  /// The same of a name of `child`, whatever is known there by now. One that
  /// the transaction changed is none the less what it is without a name.
  void DropLink(Inode& child, const Inode::Link& link);
  /// Frees pristine inodes that neither the kernel nor a child needs.
  void DropUnheld();
  /// Sets Inode::lost. Its number in stat(2) is another one then, and where it
  /// is listed: adds to `stale` who shows that.
  void SetLost(Inode& inode, bool lost, std::vector<Ino>& stale);

  struct WentBack {
    std::vector<Inode*> changed;  ///< was other than at the savepoint
    std::vector<Ino> gone;        ///< the same, and no longer in memory
    std::vector<Extent> kept;  ///< of what became an orphan: alive all the same
    std::vector<Extent> given_up;  ///< of orphans that came back: dead
  };
  /// Undoes `rewind`. What was made since and the kernel holds becomes an
  /// orphan with the content it has; an orphan that had a name then is the
  /// same inode, with the content it had.
  WentBack GoBack(const Rewind& rewind);
  /// Numbers up to `ino` are taken.
  void ReserveInos(Ino ino) { next_ino_ = std::max(next_ino_, Raw(ino) + 1); }

  /// stat(2)'s view. st_ino: of a base object its own, of a new one
  /// 2^52 + Ino.
  [[nodiscard]] struct stat StatOf(const Inode& inode) const;
  [[nodiscard]] uint64_t StatIno(uint64_t dev, uint64_t ino) const;

  [[nodiscard]] size_t size() const { return inodes_.size(); }

  /// Counts operations that changed a name or a record: while it stays, so do
  /// the paths of every inode, and what rules see of it.
  [[nodiscard]] uint64_t name_changes() const { return name_changes_; }

 private:
  std::vector<const Inode::Link*> WaysUp(const Inode& inode,
                                         const Counts& counts) const;
  std::optional<std::string> FirstPath(
      const Inode& inode, const std::vector<const Inode::Link*>& ways,
      const Counts& counts, PathMemo* memo) const;
  std::optional<std::string> PathByBase(const Inode& inode,
                                        const Counts& counts) const;
  struct BaseKey {
    uint64_t dev, ino;
    bool operator==(const BaseKey&) const = default;
  };
  struct BaseKeyHash {
    size_t operator()(const BaseKey& key) const {
      return (key.ino * 0x9E3779B97F4A7C15ULL) ^ key.dev;
    }
  };

  Inode& Obtain(Ino ino);
  void SetUpper(Inode& inode, bool upper);
  static void ReviveOrphan(Inode& inode, WentBack& went);
  void NoteLastPaths(const Rewind& rewind);
  void GoBackInode(const Rewind::PastInode& past, WentBack& went);
  static void GoBackExtents(Inode& inode, const Rewind::PastInode& past);
  void RelinkBase(Inode& inode);
  void RelinkBase(Inode& inode, const std::string& path);
  /// What to take for a directory that the base has no more.
  enum class Missing { kNone, kLostOne };
  Inode* ObtainBaseDirectory(const std::string& path, const Look& look,
                             Missing missing);
  void StripDirectory(Inode& directory);
  void DropAllBut(const std::vector<Survivor>& survivors);
  void StripSurvivors(std::vector<Survivor>& survivors);
  void LoadRest(const Image& rest, const std::set<Ino>& orphans);
  bool PlaceSurvivor(const Survivor& survivor, Inode& inode, const Look& look);
  void AddLink(Inode& child, Ino parent, std::string_view name);
  void RemoveLink(Inode& child, Ino parent, std::string_view name);
  void SetRecord(Inode& inode, InodeRecord record);
  void IndexBase(Inode& inode);
  void UnindexBase(Inode& inode);
  void MaybeEvict(Ino ino);
  [[nodiscard]] uint64_t RelativeDevice(uint64_t dev) const {
    return dev == base_device_ ? 0 : dev;
  }

  uint64_t base_device_;
  uint64_t next_ino_ = Raw(kRootIno) + 1;
  uint64_t name_changes_ = 0;
  uint64_t rebases_ = 1;  ///< the Rebase that comes next
  size_t staying_ = 0;    ///< inodes that stay in place in it
  std::unordered_map<Ino, std::unique_ptr<Inode>> inodes_;
  std::vector<Inode*> upper_;  ///< in no order
  std::vector<ExtentMap> dropped_;
  /// Several where others put a base object in the place of another one.
  std::unordered_multimap<BaseKey, Ino, BaseKeyHash> base_files_;
  std::unordered_map<std::string, Ino, StringHash, std::equal_to<>>
      base_directories_;
};

/// FindObject on `base`, and none where it cannot be asked. `base` must outlive
/// it.
[[nodiscard]] Tree::Look LookAt(const BaseDirectory& base);

}  // namespace txfs

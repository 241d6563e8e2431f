#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fs/diff/changes.h"
#include "fs/overlay/frozen.h"
#include "journal/support/result.h"

namespace txfs {

/// The side of an unchanged base object.
[[nodiscard]] ChangeSide SideOf(BaseObject object);
/// The side of an upper inode.
[[nodiscard]] ChangeSide SideOf(const Inode& inode);

/// Reads the content of a side while no operation runs.
Result<size_t> ReadSide(Frozen& frozen, const ChangeSide& side, uint64_t offset,
                        MutableByteSpan out);

/// The result of a comparison; true for an error that means that the base
/// changed meanwhile: the object is gone, or this process may no longer read
/// it.
Result<bool> OrDiffers(Result<bool> differs);

struct PlainFiles;

/// What an upper file tells about its difference from the file that the base
/// has as noted.
struct Difference {
  bool attributes = false;   ///< mode or owner differ
  bool content = false;      ///< the size differs
  bool may_content = false;  ///< only the content tells
  bool may_xattrs = false;   ///< only the extended attributes tell

  static Difference Of(const Inode& inode);
  [[nodiscard]] bool IsKnown() const { return attributes || content; }
  [[nodiscard]] bool IsNone() const {
    return !IsKnown() && !may_content && !may_xattrs;
  }
};

/// A difference that may turn out to be none.
struct ChangeCandidate {
  NetChange change;
  bool same_object = false;     ///< both sides are the same inode
  bool compare = false;         ///< contents may differ
  std::vector<Extent> extents;  ///< same object: ranges that may differ
  std::string base_xattrs_of;   ///< compare xattrs with this base path
  std::map<std::string, std::string> xattrs;

  /// Of the new file `inode` at `path`.
  static std::unique_ptr<ChangeCandidate> OfNew(std::string path,
                                                const Inode& inode);
  /// Of a regular file that the base has as noted and where it is shown. Its
  /// `before` is missing.
  static std::unique_ptr<ChangeCandidate> OfChanged(const Inode& inode,
                                                    const Difference& differs);
  /// Adds the ranges that the upper `inode` has of its own.
  void AddExtents(const Inode& inode);
};

/// Finds the net differences between base and overlay.
///
/// Works in two steps, so that the mount waits only for the first: Collect
/// reads the frozen tree and pairs names; Visit or Settle compares contents and
/// drops objects that were touched but are equal.
class ChangeList {
 public:
  /// `expand`: lists the content of a renamed directory, too.
  static Result<ChangeList> Collect(Frozen& frozen, bool expand);
  /// The same for plain.list and plain.others, which are of this freeze.
  static Result<ChangeList> Collect(Frozen& frozen, PlainFiles plain,
                                    bool expand);
  void Add(std::unique_ptr<ChangeCandidate> candidate);

  [[nodiscard]] size_t size() const { return candidates_.size(); }
  /// Base paths of deleted objects; renamed objects are not included.
  [[nodiscard]] std::vector<std::string> Deleted() const;

  /// Drops the differences that `wants` refuses. They may turn out to be none.
  void Keep(const std::function<bool(const NetChange&)>& wants);

  /// Passes the differences to `visit`, by path. Holds no locks; reads through
  /// `filesystem` and its base. What was visited takes no more memory.
  Status Visit(OverlayFilesystem& filesystem, const ChangeVisitor& visit) &&;
  /// The differences, by path, while no operation runs.
  Result<std::vector<NetChange>> Settle(Frozen& frozen) &&;

 private:
  friend class ChangeCollector;
  template <class Source>
  Status VisitFrom(Source& source, const ChangeVisitor& visit);
  std::vector<std::unique_ptr<ChangeCandidate>> candidates_;
};

/// Counts changes without reading base or contents: objects that were touched
/// count even if they are equal.
class TouchedCount {
 public:
  explicit TouchedCount(const Tree& tree) : tree_(tree) {}

  /// Call it for every inode of the tree. Inodes that have a name in the
  /// journal, or are the parent of one, must be as the transaction left them.
  void Add(const Inode& inode);
  [[nodiscard]] uint64_t Total() const;

 private:
  const Tree& tree_;
  uint64_t count_ = 0;
  /// Base paths of moved objects, with the base path of their new place, if
  /// that can be one.
  std::unordered_map<std::string, std::string> moved_;
  std::unordered_set<std::string> deleted_;  ///< base paths
  std::vector<std::string> hidden_;          ///< base paths
};

/// Whether either side is one of `below` or below it; true if `below` is empty.
[[nodiscard]] bool IsSelected(const NetChange& change,
                              const std::vector<std::string>& below);
/// Keeps the changes that are selected. Sorts by path.
std::vector<NetChange> SelectChanges(std::vector<NetChange> changes,
                                     const std::vector<std::string>& below);

}  // namespace txfs

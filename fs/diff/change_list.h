#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fs/diff/changes.h"
#include "fs/overlay/frozen.h"
#include "journal/support/result.h"

namespace txfs {

/// A side that the base has, untouched.
[[nodiscard]] ChangeSide SideOf(BaseObject object);

/// Whether two sides differ, as a comparison says. Where the base changed
/// meanwhile, what is to be compared may be gone, or somebody may have made it
/// his own: then they do.
Result<bool> OrDiffers(Result<bool> differs);

/// Finds the net differences between base and overlay.
///
/// Two steps, so that the mount waits only for the first: Collect looks at the
/// frozen tree and pairs names, Settle compares contents and drops what was
/// touched but is equal.
class ChangeList {
 public:
  /// `expand`: a renamed directory's content, too, one by one.
  static Result<ChangeList> Collect(Frozen& frozen, bool expand);

  /// Base paths that are there no more, nor anywhere else.
  [[nodiscard]] std::vector<std::string> Deleted() const;

  /// Without locks; reads through `filesystem` and its base.
  Result<std::vector<NetChange>> Settle(OverlayFilesystem& filesystem) &&;

 private:
  friend class ChangeCollector;
  struct Candidate {
    NetChange change;
    bool same_object = false;     ///< both sides are one inode
    bool compare = false;         ///< contents may differ
    std::vector<Extent> extents;  ///< same object: where they may
    std::string base_xattrs_of;   ///< compare xattrs with this base path
    std::map<std::string, std::string> xattrs;
  };
  std::vector<Candidate> candidates_;
};

/// How many changes there are, without a look at base or contents: what was
/// touched counts even where it is equal in the end.
class TouchedCount {
 public:
  explicit TouchedCount(const Tree& tree) : tree_(tree) {}

  /// To be called for every inode of the tree. What has a name in the journal,
  /// or is one that it names, must be as the transaction left it.
  void Add(const Inode& inode);
  [[nodiscard]] uint64_t Total() const;

 private:
  const Tree& tree_;
  uint64_t count_ = 0;
  /// Base paths of what lives elsewhere, and that place in the base, if it can
  /// be one.
  std::unordered_map<std::string, std::string> moved_;
  std::unordered_set<std::string> deleted_;  ///< base paths
  std::vector<std::string> hidden_;          ///< base paths
};

/// Keeps changes that touch one of `below` or something under it, on either
/// side; all when `below` is empty. Sorts by path.
std::vector<NetChange> SelectChanges(std::vector<NetChange> changes,
                                     const std::vector<std::string>& below);

}  // namespace txfs

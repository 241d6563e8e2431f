#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/posix/filesystem.h"
#include "fs/tree/tree.h"
#include "journal/change.h"

namespace txfs {

class Inquiry;

/// The extents of `extents` over [from, to), and what stands there afterwards:
/// `fresh` (which lies within) and what is left of the old at both ends.
[[nodiscard]] ExtentEdit PlanExtents(const Inode& inode, uint64_t from,
                                     uint64_t to,
                                     const std::vector<Extent>& fresh);

/// The parts of `edit.before` within [from, to): what the edit lets go of.
[[nodiscard]] std::vector<Extent> ReleasedBy(const ExtentEdit& edit,
                                             uint64_t from, uint64_t to);

/// The link count of a directory, `nlink`, with `delta` more subdirectories.
[[nodiscard]] uint32_t CountSubdirectories(uint32_t nlink, int64_t delta);

/// Collects the edits of one change. Pure: reads the tree, changes nothing.
class Plan {
 public:
  Plan(Op op, const Caller& caller, std::string exe, Timestamp now);

  /// A working copy of the inode's attributes; what differs at the end becomes
  /// an edit. A pristine inode becomes upper.
  Attr& EditAttr(const Inode& inode);
  /// mtime and ctime of a directory in which a name changed.
  void TouchDirectory(const Inode& directory);
  /// Directories came to `directory` (> 0) or left it.
  void CountSubdirectory(const Inode& directory, int delta);
  void AddInode(Ino ino, InodeRecord record);
  /// The inode loses one name; the last one takes its content and record along.
  /// The record of a base object stays, to be checked and deleted at commit.
  void DropLink(const Inode& inode);
  /// From now on `path` is where the base has the inode.
  void SetOrigin(const Inode& inode, std::string path) {
    Edited(inode).origin = std::move(path);
  }
  void SetDentry(const Inode& directory, std::string_view name,
                 DentryValue after);
  void SetExtents(ExtentEdit edit);
  void SetXattr(const Inode& inode, std::string name,
                std::optional<std::string> after);

  [[nodiscard]] Timestamp now() const { return change_.time; }
  /// Who asks; none: not known.
  [[nodiscard]] std::optional<uint32_t> user() const { return user_; }
  Change& change() { return change_; }
  /// What is to be answered before it is done; null: nobody can be asked.
  [[nodiscard]] Inquiry* inquiry() const { return inquiry_; }
  /// Fails, with a denial, when something is not answered yet.
  /// The change with all its edits. Call once.
  Change Finish() &&;

 private:
  void DropContent(const Inode& inode);

  struct Working {
    const Inode* inode;
    Attr attr;
    std::optional<std::string> origin = {};  ///< its base path, if another
  };
  Working& Edited(const Inode& inode);
  Change change_;
  std::optional<uint32_t> user_;
  Inquiry* inquiry_ = nullptr;
  std::vector<Working> working_;
  std::vector<Edit> head_, dentries_, tail_;
  std::vector<const Inode*> dropped_;
};

}  // namespace txfs

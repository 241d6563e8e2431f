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

/// The edit that replaces the extents of `inode` in [from, to) by `fresh`,
/// which lies in that range. Extents that reach out of it are cut.
[[nodiscard]] ExtentEdit PlanExtents(const Inode& inode, uint64_t from,
                                     uint64_t to,
                                     const std::vector<Extent>& fresh);

/// The parts of `edit.before` in [from, to) that are in the store.
[[nodiscard]] std::vector<Extent> ReleasedBy(const ExtentEdit& edit,
                                             uint64_t from, uint64_t to);

/// The link count `nlink` of a directory after `delta` more subdirectories.
[[nodiscard]] uint32_t CountSubdirectories(uint32_t nlink, int64_t delta);

/// Collects the edits of one change. Pure: reads the tree, changes nothing.
class Plan {
 public:
  Plan(Op op, const Caller& caller, std::string exe, Timestamp now);

  /// A working copy of the attributes; Finish makes edits of the differences. A
  /// pristine inode becomes upper.
  Attr& EditAttr(const Inode& inode);
  /// Sets mtime and ctime of a directory in which a name changed.
  void TouchDirectory(const Inode& directory);
  /// Adds `delta` to the number of subdirectories of `directory`.
  void CountSubdirectory(const Inode& directory, int delta);
  void AddInode(Ino ino, InodeRecord record);
  /// An extended attribute of a new inode.
  void AddXattr(Ino ino, std::string name, std::string value);
  /// Removes one name. With the last one, content and record go too. The record
  /// of a base object stays: a commit checks and deletes it.
  void DropLink(const Inode& inode);
  /// Sets the recorded path of the inode.
  void SetOrigin(const Inode& inode, std::string path) {
    Edited(inode).origin = std::move(path);
  }
  void SetDentry(const Inode& directory, std::string_view name,
                 DentryValue after);
  void SetExtents(ExtentEdit edit);
  void SetXattr(const Inode& inode, std::string name,
                std::optional<std::string> after);

  [[nodiscard]] Timestamp now() const { return change_.time; }
  /// The caller's user ID; none: unknown.
  [[nodiscard]] std::optional<uint32_t> user() const { return user_; }
  Change& change() { return change_; }
  /// The questions of the operation; null: the caller cannot be asked.
  [[nodiscard]] Inquiry* inquiry() const { return inquiry_; }
  /// The change with all its edits. Call once.
  Change Finish() &&;

 private:
  void DropContent(const Inode& inode);

  struct Working {
    const Inode* inode;
    Attr attr;
    std::optional<std::string> origin = {};  ///< new recorded path
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

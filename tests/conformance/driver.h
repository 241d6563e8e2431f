#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs::testing {

/// An open file of a Driver. 0 is none.
enum class Handle : uint64_t {};

/// One directory entry; `type` is a DT_* value, `cookie` is where reading goes
/// on after it.
struct Entry {
  std::string name;
  uint64_t cookie = 0;
  uint64_t ino = 0;
  unsigned char type = 0;
};

/// A time of utimensat(2): nsec may be UTIME_NOW or UTIME_OMIT.
struct FileTimes {
  timespec atime{.tv_sec = 0, .tv_nsec = UTIME_OMIT};
  timespec mtime{.tv_sec = 0, .tv_nsec = UTIME_OMIT};
};

/// Operations that a policy refused, as the log has them.
struct Refused {
  std::string op, path, new_path;
  std::string error;  ///< as ErrnoName
  std::string rule;
  uint64_t count = 0;
};

/// What a user commits, and accepts of what rules hold.
struct CommitChoice {
  std::vector<std::string> paths = {};  ///< empty: everything
  std::vector<std::string> rules = {}, accepted_paths = {};
  bool without_held = false;
  bool dry_run = false;
  bool takes_theirs = false;  ///< --on-conflict=theirs
};

/// How such a commit ended.
struct CommitOutcome {
  bool committed = false;
  /// "RULE CHANGE PATH" of what is held and not accepted, sorted.
  std::vector<std::string> held;
  /// "RULE PATH: LINE" of the lines that matter.
  std::vector<std::string> lines;
};

/// A filesystem as programs see it: paths relative to its root, system calls by
/// name. Errors carry the errno. Nothing follows a symlink in the last
/// component but Open and Truncate.
///
/// One suite runs over all drivers: the core without a kernel, a real mount,
/// and a plain directory, which shows that the suite demands nothing a usual
/// filesystem does not do.
class Driver {
 public:
  virtual ~Driver() = default;

  // Open files. Flags are those of open(2). A FIFO cannot be opened (ENXIO):
  // nobody is at its other end.
  virtual Result<Handle> Open(const std::string& path, int flags,
                              mode_t mode) = 0;
  virtual Status Close(Handle handle) = 0;
  virtual Result<std::string> ReadAt(Handle handle, uint64_t offset,
                                     size_t length) = 0;
  /// pwrite(2), or an appending write(2) when the handle was opened with
  /// O_APPEND.
  virtual Result<size_t> WriteAt(Handle handle, uint64_t offset,
                                 std::string_view bytes) = 0;
  virtual Result<struct stat> StatOf(Handle handle) = 0;
  /// linkat(2) of an open file that has no name (O_TMPFILE).
  virtual Status LinkOf(Handle handle, const std::string& path) = 0;
  virtual Status TruncateOf(Handle handle, uint64_t size) = 0;
  /// fallocate(2) with its mode bits.
  virtual Status Allocate(Handle handle, int mode, uint64_t offset,
                          uint64_t length) = 0;
  virtual Result<uint64_t> Seek(Handle handle, uint64_t offset, int whence) = 0;
  virtual Status Sync(Handle handle) = 0;
  virtual Result<size_t> CopyRange(Handle from, uint64_t from_offset, Handle to,
                                   uint64_t to_offset, size_t length) = 0;

  // Paths.
  virtual Status Mkdir(const std::string& path, mode_t mode) = 0;
  virtual Status Rmdir(const std::string& path) = 0;
  virtual Status Unlink(const std::string& path) = 0;
  /// renameat2(2) with its flags.
  virtual Status Rename(const std::string& from, const std::string& to,
                        unsigned flags) = 0;
  virtual Status Link(const std::string& existing, const std::string& path) = 0;
  virtual Status Symlink(const std::string& target,
                         const std::string& path) = 0;
  virtual Result<std::string> Readlink(const std::string& path) = 0;
  virtual Status Mkfifo(const std::string& path, mode_t mode) = 0;
  virtual Status Chmod(const std::string& path, mode_t mode) = 0;
  virtual Status Chown(const std::string& path, uid_t uid, gid_t gid) = 0;
  virtual Status Utimens(const std::string& path, const FileTimes& times) = 0;
  virtual Status Truncate(const std::string& path, uint64_t size) = 0;
  virtual Result<struct stat> Stat(const std::string& path) = 0;
  /// The time of birth as statx(2) reports it, if it does.
  virtual Result<std::optional<Timestamp>> BirthOf(const std::string& path) = 0;
  virtual Result<struct statvfs> StatFs() = 0;

  // Extended attributes; `flags` as in setxattr(2).
  virtual Status SetXattr(const std::string& path, const std::string& name,
                          std::string_view value, int flags) = 0;
  virtual Result<std::string> GetXattr(const std::string& path,
                                       const std::string& name) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(
      const std::string& path) = 0;
  virtual Status RemoveXattr(const std::string& path,
                             const std::string& name) = 0;

  // Directories.
  virtual Result<Handle> OpenDir(const std::string& path) = 0;
  virtual Status CloseDir(Handle handle) = 0;
  /// At least one and at most about `count` entries after `cookie` (0: from the
  /// start), with "." and "..". Empty at the end.
  virtual Result<std::vector<Entry>> ReadDir(Handle handle, uint64_t cookie,
                                             size_t count) = 0;

  /// The user for whom the next operations are done. Needs root.
  virtual void ActAs(uid_t uid, gid_t gid) = 0;

  /// Closes the filesystem and opens it again, as umount and mount do. Requires
  /// that no handle is open.
  virtual Status Remount() = 0;
  /// Applies the transaction to the base; handles stay usable.
  virtual Status Commit() = 0;
  /// Throws the transaction away; handles stay usable.
  virtual Status Discard() = 0;
  /// Marks this moment of the transaction under a name nobody has.
  virtual Status MakeSavepoint(const std::string&) {
    return Fail(EOPNOTSUPP, "savepoint");
  }
  /// Takes back everything since; handles stay usable.
  virtual Status Rollback(const std::string&) {
    return Fail(EOPNOTSUPP, "rollback");
  }
  /// Marks the begin of a tool call, or its end.
  virtual Status MarkCall(const std::string& /*id*/, bool /*end*/) {
    return Fail(EOPNOTSUPP, "call");
  }
  /// Takes back what the call changed. Returns the paths that later changes
  /// built on it: then all is as before.
  virtual Result<std::vector<std::string>> RevertCall(
      const std::string& /*id*/) {
    return Fail(EOPNOTSUPP, "revert");
  }
  /// Takes the newest commit back in the base; handles stay usable.
  virtual Status Undo() { return Fail(EOPNOTSUPP, "undo"); }
  /// From now on, to the next Remount at least, the rules of `text` hold
  /// (docs/policy.md).
  virtual Status UsePolicy(const std::string& /*text*/) {
    return Fail(EOPNOTSUPP, "policy");
  }
  /// Commits what rules at the commit let pass. Conflicts are an error.
  virtual Result<CommitOutcome> Review(const CommitChoice& /*choice*/) {
    return Fail(EOPNOTSUPP, "policy");
  }
  /// What a policy refused in the transaction, the newest last.
  virtual Result<std::vector<Refused>> ReadRefused() {
    return Fail(EOPNOTSUPP, "policy");
  }
  /// Everything acknowledged goes where it ends up: for measuring the store.
  virtual Status Settle() = 0;
  /// Bytes of the store's blocks on disk.
  virtual Result<uint64_t> StoreBytes() = 0;

  /// Where the kernel shows the filesystem; empty when it does not.
  [[nodiscard]] virtual std::string mountpoint() const { return {}; }
  /// Whether there is a base that stays untouched until commit.
  [[nodiscard]] virtual bool has_base() const { return true; }

  // Shorthands made of the above.
  Status WriteFile(const std::string& path, std::string_view content);
  Status AppendFile(const std::string& path, std::string_view content);
  /// Writes into an existing file.
  Status PatchFile(const std::string& path, uint64_t offset,
                   std::string_view bytes);
  Result<std::string> ReadFile(const std::string& path);
  /// `length` bytes at `offset`.
  Result<std::string> ReadRange(const std::string& path, uint64_t offset,
                                size_t length);
  /// Entries without "." and "..", by name.
  Result<std::vector<Entry>> List(const std::string& path);
  Result<std::vector<std::string>> Names(const std::string& path);
  /// Deletes everything below `path`, and `path`, as rm -rf does: unlinking
  /// while it reads.
  Status RemoveRecursively(const std::string& path);
};

/// Everything there is to see of one file.
struct FileView {
  mode_t mode = 0;
  uint64_t ino = 0;
  uint64_t nlink = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  uint64_t size = 0;  ///< 0 for directories
  Timestamp mtime, ctime;
  std::string content;  ///< or the symlink's target; a digest when it is large
  std::map<std::string, std::string> xattrs;

  bool operator==(const FileView&) const = default;
};

/// What of a FileView two trees must share to be the same tree.
struct ViewRules {
  bool ino = true;    ///< st_ino is the same
  bool ctime = true;  ///< ctime is the same
  bool mtime = true;  ///< mtime is the same to the nanosecond
  /// mtimes are the same where either is before this, in seconds; the rest is
  /// "now".
  int64_t fixed_before = 0;
};

/// A whole tree by path; the root is "".
using TreeView = std::map<std::string, FileView>;

/// Reads the tree below the root; `.txfs` in the root is left out.
Result<TreeView> ViewTree(Driver& driver);
/// The same of a workspace and of its mount: without the number of links of the
/// root, which in the one counts the store.
Result<TreeView> ViewWithoutStore(Driver& driver);

/// Empty when the trees are the same by `rules`, else one line per difference.
std::string Compare(const TreeView& expected, const TreeView& actual,
                    const ViewRules& rules);

/// The symbolic name of an errno; "OK" for 0.
std::string ErrnoName(int code);
template <class T>
int ErrnoOf(const Result<T>& result) {
  return result ? 0 : result.error().code;
}

}  // namespace txfs::testing

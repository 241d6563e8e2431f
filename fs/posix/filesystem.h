#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/change.h"
#include "journal/journal.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"
#include "policy/policy.h"

namespace txfs {

class Approver;
class Inquiry;
class LongWait;

/// Who asks. Permissions were checked by the kernel (default_permissions).
struct Caller {
  uint32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  /// Not when the kernel writes back what was stored through a mapping: then
  /// `uid` is kNoUid, and the other numbers are nobody's.
  bool known = true;
  /// How its thread may wait for long; null: as it likes.
  LongWait* wait = nullptr;
  /// What rules want answered; the filesystem's own business.
  Inquiry* inquiry = nullptr;
};

/// An inode and its attributes as stat(2) shows them.
struct Node {
  Ino ino = kNoIno;
  struct stat st{};
  uint64_t generation = 0;  ///< another one: not what `ino` was before
  bool fleeting = false;    ///< its name leads to another one the next time
};

/// Which attributes SetAttr sets; unset ones stay.
struct AttrRequest {
  std::optional<uint32_t> mode;  ///< permission bits
  std::optional<uint32_t> uid, gid;
  std::optional<uint64_t> size;
  std::optional<Timestamp> atime, mtime, ctime;
  bool atime_now = false, mtime_now = false;
  bool kill_privileges =
      false;  ///< clear set-user-ID and set-group-ID as write(2) does
};

/// One directory entry. `cookie` is the offset at which reading goes on after
/// it.
struct DirEntry {
  std::string name;
  uint64_t cookie = 0;
  uint64_t st_ino = 0;
  FileType type = FileType::kRegular;
};

/// What the kernel may still have cached after the tree changed under it.
struct StaleCaches {
  struct Name {
    Ino parent;
    std::string name;
  };
  std::vector<Ino> inodes;      ///< attributes and content may differ
  std::vector<Ino> attributes;  ///< only these may: the content stays cached
  std::vector<Name> names;      ///< may lead to another inode, or to none
  /// Paths of directories that are elsewhere than the kernel has them, and have
  /// no path for it until somebody looks that up.
  std::vector<std::string> moved;

  [[nodiscard]] bool empty() const {
    return inodes.empty() && attributes.empty() && names.empty();
  }
  void Append(StaleCaches more) {
    std::ranges::move(more.inodes, std::back_inserter(inodes));
    std::ranges::move(more.attributes, std::back_inserter(attributes));
    std::ranges::move(more.names, std::back_inserter(names));
    std::ranges::move(more.moved, std::back_inserter(moved));
  }
};

struct FilesystemOptions {
  const Clock* clock = &Clock::System();
  /// Executable of a process, for the log; tests pass their own.
  std::function<std::string(uint32_t pid)> exe_of;
  /// What may not be done; null: everything may.
  std::shared_ptr<const policy::Policy> policy;
  /// Answers questions of rules, and outlives the filesystem; null: nobody
  /// does, which refuses what they are about.
  Approver* approver = nullptr;
  /// The kernel lets other users in, by the owners and modes that it was told.
  /// The base is then read only where it is as it was told.
  bool is_for_others = false;
};

/// What write(2) says besides where and what.
struct WriteMode {
  bool kill_privileges = false;  ///< clear set-user-ID and set-group-ID
  /// O_APPEND: the end of the file is meant, and the offset is where the kernel
  /// takes it to be, which a rollback may have moved.
  bool append = false;
};

enum class RenameMode { kReplace, kNoReplace, kExchange };
enum class XattrMode { kAny, kCreate, kReplace };
enum class AllocateMode {
  kReserve,
  kReserveKeepSize,
  kPunchHole,
  kZero,
  kZeroKeepSize
};

/// The filesystem without a kernel: base, tree and journal behind POSIX
/// operations on inodes.
///
/// Thread-safe; the locks are in docs/locking.md. Every operation that returns
/// a Node counts one lookup of its inode, which the caller gives back with
/// Forget. Errors carry the errno that the system
/// call is to fail with.
class Filesystem {
 public:
  /// `base`: the workspace's root directory, opened before anything is mounted
  /// over it. Takes `journal`'s recovered state as the tree.
  static Result<std::unique_ptr<Filesystem>> Open(
      UniqueFd base, std::unique_ptr<Journal> journal,
      FilesystemOptions options = {});
  virtual ~Filesystem() = default;

  // Names.
  virtual Result<Node> Lookup(Ino parent, std::string_view name) = 0;
  virtual void Forget(Ino ino, uint64_t lookups) = 0;
  virtual Result<Node> Create(const Caller&, Ino parent, std::string_view name,
                              uint32_t mode) = 0;
  virtual Result<Node> MakeNode(const Caller&, Ino parent,
                                std::string_view name, uint32_t mode,
                                uint64_t rdev) = 0;
  virtual Result<Node> MakeDirectory(const Caller&, Ino parent,
                                     std::string_view name, uint32_t mode) = 0;
  virtual Result<Node> MakeSymlink(const Caller&, Ino parent,
                                   std::string_view name,
                                   std::string_view target) = 0;
  virtual Result<Node> Link(const Caller&, Ino ino, Ino parent,
                            std::string_view name) = 0;
  virtual Status Unlink(const Caller&, Ino parent, std::string_view name) = 0;
  virtual Status RemoveDirectory(const Caller&, Ino parent,
                                 std::string_view name) = 0;
  virtual Status Rename(const Caller&, Ino parent, std::string_view name,
                        Ino new_parent, std::string_view new_name,
                        RenameMode mode) = 0;
  /// Entries after `cookie` (0: from the start, which includes "." and ".."),
  /// in a fixed order, until `visit` returns false. An entry that stays while
  /// others come and go is seen once.
  virtual Status ReadDirectory(
      Ino ino, uint64_t cookie,
      const std::function<bool(const DirEntry&)>& visit) = 0;

  // Inodes.
  virtual Result<struct stat> GetAttr(Ino ino) = 0;
  virtual Result<struct stat> SetAttr(const Caller&, Ino ino,
                                      const AttrRequest& request) = 0;
  virtual Result<std::string> ReadLink(Ino ino) = 0;
  virtual Result<std::string> GetXattr(Ino ino, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(Ino ino) = 0;
  virtual Status SetXattr(const Caller&, Ino ino, std::string_view name,
                          std::string_view value, XattrMode mode) = 0;
  virtual Status RemoveXattr(const Caller&, Ino ino, std::string_view name) = 0;

  // Content.
  /// Fills `out` from `offset`; returns the bytes read, fewer at the end of the
  /// file.
  virtual Result<size_t> Read(Ino ino, uint64_t offset,
                              MutableByteSpan out) = 0;
  /// Writes all of `bytes` or nothing of what it could not journal; returns the
  /// bytes written (short only when part of a write over kRecordContentMax
  /// failed).
  virtual Result<size_t> Write(const Caller&, Ino ino, uint64_t offset,
                               ByteSpan bytes, WriteMode mode) = 0;
  virtual Status Allocate(const Caller&, Ino ino, uint64_t offset,
                          uint64_t length, AllocateMode mode) = 0;
  /// Copies up to `length` bytes; returns how many. EINVAL when the ranges
  /// overlap in one inode.
  virtual Result<size_t> CopyRange(const Caller&, Ino from,
                                   uint64_t from_offset, Ino to,
                                   uint64_t to_offset, uint64_t length) = 0;
  /// SEEK_DATA and SEEK_HOLE. ENXIO past the end.
  virtual Result<uint64_t> Seek(Ino ino, uint64_t offset, int whence) = 0;
  /// fsync: everything acknowledged so far survives power loss.
  virtual Status Sync() = 0;
  virtual Result<struct statvfs> StatFs() = 0;

  /// Looks again at the inodes on which an operation failed with ESTALE since
  /// the base has another object for them, or another owner or mode, than the
  /// kernel was told. `tell` gets what is stale; these operations fail
  /// until the kernel has asked for owner and mode again. Not to be called by a
  /// request's handler.
  virtual void SettleDoubts(
      const std::function<void(const StaleCaches&)>& /*tell*/) {}
};

}  // namespace txfs

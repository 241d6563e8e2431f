#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/host/process_identity.h"
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

/// The calling process. The kernel has checked its permissions
/// (default_permissions).
struct Caller {
  uint32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t umask = 0;  ///< for new objects: not yet applied to their mode
  /// False for the write-back of a shared mapping: then `uid` is kNoUid, and
  /// the other numbers are meaningless.
  bool known = true;
  /// How its thread may wait for a long time; null: without restriction.
  LongWait* wait = nullptr;
  /// Questions of rules; internal to the filesystem.
  Inquiry* inquiry = nullptr;
  /// Set if a change of content took set-user-ID or set-group-ID away, which
  /// the kernel does not expect; null: nobody wants to know.
  bool* lost_privileges = nullptr;
};

/// An inode and its attributes as stat(2) shows them.
struct Node {
  Ino ino = kNoIno;
  struct stat st{};
  uint64_t generation = 0;  ///< distinguishes reuses of `ino`
  bool fleeting = false;    ///< the next lookup finds another inode
};

/// The attributes that SetAttr changes; unset ones stay.
struct AttrRequest {
  std::optional<uint32_t> mode;  ///< permission bits
  std::optional<uint32_t> uid, gid;
  std::optional<uint64_t> size;
  std::optional<Timestamp> atime, mtime, ctime;
  bool atime_now = false, mtime_now = false;
  bool kill_privileges =
      false;  ///< clear set-user-ID and set-group-ID as write(2) does
};

/// One directory entry. `cookie` is the offset for a read after it.
struct DirEntry {
  std::string name;
  uint64_t cookie = 0;
  uint64_t st_ino = 0;
  FileType type = FileType::kRegular;
};

/// Kernel caches to invalidate after a change of the tree.
struct StaleCaches {
  struct Name {
    Ino parent;
    std::string name;
  };
  std::vector<Ino> inodes;      ///< attributes and content may differ
  std::vector<Ino> attributes;  ///< attributes only: the content stays cached
  std::vector<Name> names;      ///< may lead to another inode, or to none
  /// Paths of moved directories. For the kernel they have no path until the
  /// next lookup.
  std::vector<std::string> moved;
  /// A name that may show another object now; "": names of the directory.
  struct Watched {
    Ino parent;
    std::string name;
    bool was_there = false;
    bool was_directory = false;
    Ino was = kNoIno;  ///< its inode, if it is a file that has no name now
  };
  /// For processes that watch the directories (PathEvent).
  std::vector<Watched> watched;

  [[nodiscard]] bool empty() const {
    return inodes.empty() && attributes.empty() && names.empty();
  }
  void Append(StaleCaches more) {
    std::ranges::move(more.inodes, std::back_inserter(inodes));
    std::ranges::move(more.attributes, std::back_inserter(attributes));
    std::ranges::move(more.names, std::back_inserter(names));
    std::ranges::move(more.moved, std::back_inserter(moved));
    std::ranges::move(more.watched, std::back_inserter(watched));
  }
};

struct FilesystemOptions {
  const Clock* clock = &Clock::System();
  /// Returns the executable of a process, for the log.
  std::function<std::string(uint32_t pid)> exe_of;
  /// Returns the rights of a process, for set-user-ID and set-group-ID.
  std::function<FileRights(const Caller&)> rights_of;
  /// Judges operations; null allows everything.
  std::shared_ptr<const policy::Policy> policy;
  /// Answers questions of rules and outlives the filesystem; null denies them.
  Approver* approver = nullptr;
  /// Other users have access, which the kernel checks by cached owners and
  /// modes. The base is read only while it matches these attributes.
  bool is_for_others = false;
};

/// Flags of write(2).
struct WriteMode {
  /// Clear set-user-ID and set-group-ID, because the caller lacks CAP_FSETID;
  /// none: not known.
  std::optional<bool> kill_privileges = false;
  /// O_APPEND: write at the end of the file. The offset is the end in the
  /// kernel's cache, which a rollback may have changed.
  bool append = false;
  /// O_APPEND, of the parts after the first, which follow it.
  bool append_goes_on = false;
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
/// a Node adds one lookup of its inode; the caller returns it with Forget. An
/// error has the errno for the system call.
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
  /// Prepares a LookupAll of `names` in `parent`, which is likely to follow.
  virtual void ExpectLookups(Ino parent,
                             std::span<const std::string_view> names) {
    static_cast<void>(parent);
    static_cast<void>(names);
  }
  /// Looks up each of `names` in `parent`; the results are in their order.
  virtual std::vector<Result<Node>> LookupAll(
      Ino parent, std::span<const std::string_view> names) {
    std::vector<Result<Node>> nodes;
    nodes.reserve(names.size());
    for (const std::string_view name : names) {
      nodes.push_back(Lookup(parent, name));
    }
    return nodes;
  }
  /// Whether the kernel is told of names that other programs make in the
  /// directory, so that it may remember that a name is missing.
  [[nodiscard]] virtual bool ReportsNames(Ino /*directory*/) { return true; }
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
  /// A regular file without a name (O_TMPFILE), to be deleted with its last
  /// reference unless Link gives it a name.
  virtual Result<Node> CreateUnnamed(const Caller&, Ino /*directory*/,
                                     uint32_t /*mode*/) {
    return Fail(EOPNOTSUPP, "O_TMPFILE");
  }
  virtual Result<Node> Link(const Caller&, Ino ino, Ino parent,
                            std::string_view name) = 0;
  virtual Status Unlink(const Caller&, Ino parent, std::string_view name) = 0;
  virtual Status RemoveDirectory(const Caller&, Ino parent,
                                 std::string_view name) = 0;
  virtual Status Rename(const Caller&, Ino parent, std::string_view name,
                        Ino new_parent, std::string_view new_name,
                        RenameMode mode) = 0;
  /// Visits the entries after `cookie` (0: from the start, with "." and "..")
  /// in a fixed order until `visit` returns false. An entry is visited once
  /// even if other entries come and go.
  virtual Status ReadDirectory(
      Ino ino, uint64_t cookie,
      const std::function<bool(const DirEntry&)>& visit) = 0;

  // Inodes.
  virtual Result<struct stat> GetAttr(Ino ino) = 0;
  /// The time of birth; none: unknown.
  virtual Result<std::optional<Timestamp>> BirthOf(Ino /*ino*/) {
    return std::nullopt;
  }
  virtual Result<struct stat> SetAttr(const Caller&, Ino ino,
                                      const AttrRequest& request) = 0;
  virtual Result<std::string> ReadLink(Ino ino) = 0;
  virtual Result<std::string> GetXattr(Ino ino, std::string_view name) = 0;
  virtual Result<std::vector<std::string>> ListXattrs(Ino ino) = 0;
  virtual Status SetXattr(const Caller&, Ino ino, std::string_view name,
                          std::string_view value, XattrMode mode) = 0;
  virtual Status RemoveXattr(const Caller&, Ino ino, std::string_view name) = 0;

  // Content.
  /// Whether CheckRead may refuse anything, so that it must be asked.
  [[nodiscard]] virtual bool ChecksReads() { return false; }
  /// Asked before a process opens a file for reading, mapping or execution.
  /// EACCES: a rule refuses that.
  virtual Status CheckRead(const Caller&, Ino /*ino*/) { return {}; }
  /// Fills `out` from `offset`; returns the bytes read, fewer at the end of the
  /// file.
  virtual Result<size_t> Read(Ino ino, uint64_t offset,
                              MutableByteSpan out) = 0;
  /// Writes `bytes` and returns their number. Short only if a write over
  /// kRecordContentMax fails after the first records.
  virtual Result<size_t> Write(const Caller&, Ino ino, uint64_t offset,
                               ByteSpan bytes, WriteMode mode) = 0;
  virtual Status Allocate(const Caller&, Ino ino, uint64_t offset,
                          uint64_t length, AllocateMode mode) = 0;
  /// Copies up to `length` bytes; returns how many. EINVAL when the ranges
  /// overlap in one inode.
  virtual Result<size_t> CopyRange(const Caller&, Ino from,
                                   uint64_t from_offset, Ino to,
                                   uint64_t to_offset, uint64_t length) = 0;
  /// SEEK_DATA and SEEK_HOLE. ENXIO: `offset` is at or past the end, or no data
  /// follows.
  virtual Result<uint64_t> Seek(Ino ino, uint64_t offset, int whence) = 0;
  /// fsync: all acknowledged changes survive power loss.
  virtual Status Sync() = 0;
  virtual Result<struct statvfs> StatFs() = 0;

  /// Looks again at the inodes for which an operation failed with ESTALE,
  /// because the base has another object, owner or mode than the kernel. `tell`
  /// receives the stale caches. Operations on these inodes fail until the
  /// kernel has asked again. Do not call from the handler of a request.
  virtual void SettleDoubts(
      const std::function<void(const StaleCaches&)>& /*tell*/) {}
};

}  // namespace txfs

#include "fs/fuse/fuse_ops.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "fs/fuse/fuse_readdir.h"
#include "fs/fuse/fuse_reply.h"
#include "fs/fuse/fuse_wait.h"
#include "fs/fuse/fuse_workers.h"

namespace txfs {
namespace {

FuseContext& ContextOf(fuse_req_t req) {
  return *static_cast<FuseContext*>(fuse_req_userdata(req));
}

Filesystem& FsOf(fuse_req_t req) { return ContextOf(req).fs; }

Caller CallerOf(fuse_req_t req) {
  // A thread handles one request at a time.
  thread_local RequestWait wait;
  wait.Handle(req);
  const fuse_ctx* ctx = fuse_req_ctx(req);
  return {.pid = static_cast<uint32_t>(ctx->pid),
          .uid = ctx->uid,
          .gid = ctx->gid,
          .umask = static_cast<uint32_t>(ctx->umask),
          .wait = &wait};
}

/// Non-null if the request is one of an announcement.
Announcer* AnnouncerOf(fuse_req_t req) {
  Announcer* announcer = ContextOf(req).announcer;
  return announcer->IsOwn(req) ? announcer : nullptr;
}

// INIT

/// What we want where the kernel has it. Not in it on purpose: WRITEBACK_CACHE
/// (a write returns when the journal has it), ATOMIC_O_TRUNC (without OPEN the
/// kernel would drop the truncation), AUTO_INVAL_DATA (it would throw the page
/// cache away after each of our own writes), ASYNC_DIO (after an asynchronous
/// direct write the kernel would keep the pages that were read meanwhile),
/// READDIRPLUS_AUTO (the kernel would ask for attributes once per directory,
/// and then look up one by one: FuseScans).
constexpr unsigned kWanted =
    FUSE_CAP_ASYNC_READ | FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_READDIRPLUS |
    FUSE_CAP_CACHE_SYMLINKS | FUSE_CAP_EXPLICIT_INVAL_DATA |
    FUSE_CAP_NO_OPEN_SUPPORT | FUSE_CAP_NO_OPENDIR_SUPPORT |
    FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;

void OnInit(void* userdata, fuse_conn_info* connection) {
  auto& context = *static_cast<FuseContext*>(userdata);
  connection->want = kWanted & connection->capable;
  const bool has_no_open =
      (connection->capable & FUSE_CAP_NO_OPEN_SUPPORT) != 0;
  // Without a request at the open, the page cache would answer for a rule.
  context.zero_message_open = has_no_open && !context.fs.ChecksReads();
  context.zero_message_opendir =
      (connection->capable & FUSE_CAP_NO_OPENDIR_SUPPORT) != 0;
  if (context.log && !(has_no_open && context.zero_message_opendir)) {
    context.log(
        "this kernel is older than Linux 5.1 and sends a request at every "
        "open: opening files and directories is slow");
  }
}

// Names

void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnLookup(req, parent, name);
  }
  FuseContext& context = ContextOf(req);
  const auto node = Guard([&] { return context.fs.Lookup(Ino{parent}, name); });
  // Whoever opens a directory only goes on with its list of names.
  if (node && !S_ISDIR(node->st.st_mode)) {
    context.scans.OnLookup(Ino{parent}, Clock::System().Steady());
  }
  ReplyLookup(req, context.fs, Ino{parent}, node);
}

void ForgetOne(Filesystem& fs, fuse_ino_t ino, uint64_t lookups) {
  if (Announcer::IsPlaceholder(ino)) return;
  // There is no reply to carry an error; at worst the inode stays in memory.
  (void)Guard([&]() -> Status {
    fs.Forget(Ino{ino}, lookups);
    return {};
  });
}

void OnForget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups) {
  ForgetOne(FsOf(req), ino, lookups);
  fuse_reply_none(req);
}

void OnForgetMulti(fuse_req_t req, size_t count, fuse_forget_data* forgets) {
  for (size_t i = 0; i < count; ++i) {
    ForgetOne(FsOf(req), forgets[i].ino, forgets[i].nlookup);
  }
  fuse_reply_none(req);
}

void OnCreate(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
              fuse_file_info* fi) {
  Filesystem& fs = FsOf(req);
  const auto node =
      Guard([&] { return fs.Create(CallerOf(req), Ino{parent}, name, mode); });
  ReplyCreated(req, fs, node, *fi);
}

void OnMknod(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode,
             dev_t rdev) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnMake(req, parent, name, mode);
  }
  Filesystem& fs = FsOf(req);
  ReplyEntry(req, fs, Guard([&] {
               return fs.MakeNode(CallerOf(req), Ino{parent}, name, mode, rdev);
             }));
}

void OnMkdir(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnMake(req, parent, name, S_IFDIR | (mode & 07777));
  }
  Filesystem& fs = FsOf(req);
  ReplyEntry(req, fs, Guard([&] {
               return fs.MakeDirectory(CallerOf(req), Ino{parent}, name, mode);
             }));
}

void OnSymlink(fuse_req_t req, const char* target, fuse_ino_t parent,
               const char* name) {
  Filesystem& fs = FsOf(req);
  ReplyEntry(req, fs, Guard([&] {
               return fs.MakeSymlink(CallerOf(req), Ino{parent}, name, target);
             }));
}

void OnLink(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent,
            const char* name) {
  Filesystem& fs = FsOf(req);
  ReplyEntry(req, fs, Guard([&] {
               return fs.Link(CallerOf(req), Ino{ino}, Ino{parent}, name);
             }));
}

void OnUnlink(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnRemove(req, parent, name);
  }
  ReplyStatus(req, Guard([&] {
                return FsOf(req).Unlink(CallerOf(req), Ino{parent}, name);
              }));
}

void OnRmdir(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnRemove(req, parent, name);
  }
  ReplyStatus(req, Guard([&] {
                return FsOf(req).RemoveDirectory(CallerOf(req), Ino{parent},
                                                 name);
              }));
}

Result<RenameMode> DecodeRenameFlags(unsigned flags) {
  switch (flags) {
    case 0:
      return RenameMode::kReplace;
    case RENAME_NOREPLACE:
      return RenameMode::kNoReplace;
    case RENAME_EXCHANGE:
      return RenameMode::kExchange;
    default:
      return Fail(EINVAL, {});
  }
}

void OnRename(fuse_req_t req, fuse_ino_t parent, const char* name,
              fuse_ino_t new_parent, const char* new_name, unsigned flags) {
  ReplyStatus(req, Guard([&]() -> Status {
                const RenameMode mode = TRY(DecodeRenameFlags(flags));
                return FsOf(req).Rename(CallerOf(req), Ino{parent}, name,
                                        Ino{new_parent}, new_name, mode);
              }));
}

void OnReadDir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
               fuse_file_info*) {
  ReplyEntries(req, FsOf(req), Ino{ino}, static_cast<uint64_t>(cookie), size);
}

void OnReadDirPlus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                   fuse_file_info*) {
  ReplyEntriesPlus(req, ContextOf(req), Ino{ino}, static_cast<uint64_t>(cookie),
                   size);
}

// Inodes

void OnGetAttr(fuse_req_t req, fuse_ino_t ino, fuse_file_info*) {
  ReplyAttr(req, Guard([&] { return FsOf(req).GetAttr(Ino{ino}); }));
}

AttrRequest DecodeAttrRequest(const struct stat& st, int to_set) {
  const auto has = [to_set](int bit) { return (to_set & bit) != 0; };
  AttrRequest request;
  if (has(FUSE_SET_ATTR_MODE)) request.mode = st.st_mode & 07777;
  if (has(FUSE_SET_ATTR_UID)) request.uid = st.st_uid;
  if (has(FUSE_SET_ATTR_GID)) request.gid = st.st_gid;
  if (has(FUSE_SET_ATTR_SIZE)) request.size = static_cast<uint64_t>(st.st_size);
  request.atime_now = has(FUSE_SET_ATTR_ATIME_NOW);
  request.mtime_now = has(FUSE_SET_ATTR_MTIME_NOW);
  if (has(FUSE_SET_ATTR_ATIME) && !request.atime_now) {
    request.atime = Timestamp::From(st.st_atim);
  }
  if (has(FUSE_SET_ATTR_MTIME) && !request.mtime_now) {
    request.mtime = Timestamp::From(st.st_mtim);
  }
  if (has(FUSE_SET_ATTR_CTIME)) request.ctime = Timestamp::From(st.st_ctim);
  // The kernel's name of this bit is FATTR_KILL_SUIDGID: it means both.
  request.kill_privileges = has(FUSE_SET_ATTR_KILL_SUID);
  return request;
}

void OnSetAttr(fuse_req_t req, fuse_ino_t ino, struct stat* st, int to_set,
               fuse_file_info*) {
  if (Announcer* own = AnnouncerOf(req)) {
    return own->OnSetAttr(req, ino, to_set);
  }
  const AttrRequest request = DecodeAttrRequest(*st, to_set);
  ReplyAttr(req, Guard([&] {
              return FsOf(req).SetAttr(CallerOf(req), Ino{ino}, request);
            }));
}

void OnReadLink(fuse_req_t req, fuse_ino_t ino) {
  ReplyText(req, Guard([&] { return FsOf(req).ReadLink(Ino{ino}); }));
}

void OnGetXattr(fuse_req_t req, fuse_ino_t ino, const char* name, size_t size) {
  const auto value = Guard([&] { return FsOf(req).GetXattr(Ino{ino}, name); });
  ReplyXattr(req, value, size);
}

/// The names, each with a NUL after it, as listxattr(2) returns them.
Result<std::string> JoinXattrNames(Filesystem& fs, Ino ino) {
  std::string joined;
  for (const std::string& name : TRY(fs.ListXattrs(ino))) {
    joined += name;
    joined += '\0';
  }
  return joined;
}

void OnListXattr(fuse_req_t req, fuse_ino_t ino, size_t size) {
  const auto names = Guard([&] { return JoinXattrNames(FsOf(req), Ino{ino}); });
  ReplyXattr(req, names, size);
}

Result<XattrMode> DecodeXattrFlags(int flags) {
  switch (flags) {
    case 0:
      return XattrMode::kAny;
    case XATTR_CREATE:
      return XattrMode::kCreate;
    case XATTR_REPLACE:
      return XattrMode::kReplace;
    default:
      return Fail(EINVAL, {});
  }
}

void OnSetXattr(fuse_req_t req, fuse_ino_t ino, const char* name,
                const char* value, size_t size, int flags) {
  ReplyStatus(req, Guard([&]() -> Status {
                const XattrMode mode = TRY(DecodeXattrFlags(flags));
                return FsOf(req).SetXattr(CallerOf(req), Ino{ino}, name,
                                          {value, size}, mode);
              }));
}

void OnRemoveXattr(fuse_req_t req, fuse_ino_t ino, const char* name) {
  ReplyStatus(req, Guard([&] {
                return FsOf(req).RemoveXattr(CallerOf(req), Ino{ino}, name);
              }));
}

// Opening: no message at all where the kernel can do without

void OnOpen(fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (ContextOf(req).zero_message_open) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  if ((fi->flags & O_ACCMODE) != O_WRONLY) {
    const Status allowed =
        Guard([&] { return FsOf(req).CheckRead(CallerOf(req), Ino{ino}); });
    if (!allowed) return ReplyStatus(req, allowed);
  }
  fi->keep_cache = 1;
  fuse_reply_open(req, fi);
}

void OnOpenDir(fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  if (ContextOf(req).zero_message_opendir) {
    fuse_reply_err(req, ENOSYS);
    return;
  }
  fi->keep_cache = 1;
  fi->cache_readdir = 1;
  fuse_reply_open(req, fi);
}

// Content

/// A buffer of `size` bytes that this thread uses again and again.
MutableByteSpan ReadBuffer(size_t size) {
  thread_local std::unique_ptr<std::byte[]> buffer;
  thread_local size_t capacity = 0;
  if (capacity < size) {
    capacity = 0;
    buffer = std::make_unique_for_overwrite<std::byte[]>(size);
    capacity = size;
  }
  return {buffer.get(), size};
}

void OnRead(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
            fuse_file_info*) {
  MutableByteSpan buffer;
  const auto n = Guard([&] {
    buffer = ReadBuffer(size);
    return FsOf(req).Read(Ino{ino}, static_cast<uint64_t>(offset), buffer);
  });
  if (!n) return ReplyCount(req, n);
  fuse_reply_buf(req, reinterpret_cast<const char*>(buffer.data()), *n);
}

/// Before the reply, so that no program runs with privileges that a change of
/// content took: the kernel expects no other mode after it.
void ForgetMode(fuse_req_t req, fuse_ino_t ino) {
  fuse_lowlevel_notify_inval_inode(ContextOf(req).session, ino, -1, 0);
}

void OnWrite(fuse_req_t req, fuse_ino_t ino, const char* bytes, size_t size,
             off_t offset, fuse_file_info* fi) {
  const WriteMode mode{.kill_privileges = FuseWire::WriteKillsPrivileges(),
                       .append = (fi->flags & O_APPEND) != 0};
  RefusedPages& refused = *ContextOf(req).refused_pages;
  bool lost = false;
  Caller caller = CallerOf(req);
  caller.lost_privileges = &lost;
  if (fi->writepage != 0) {
    caller.known = false;
    caller.uid = kNoUid;
  }
  const auto written = Guard([&] {
    return FsOf(req).Write(caller, Ino{ino}, static_cast<uint64_t>(offset),
                           AsBytes({bytes, size}), mode);
  });
  const bool refuses_pages =
      !caller.known && !written && written.error().kind == ErrorKind::kVetoed;
  if (lost) ForgetMode(req, ino);
  ReplyCount(req, written);
  // Of write(2) the kernel itself forgets what was refused.
  if (refuses_pages) refused.Forget(ino, offset, size);
}

void OnFsync(fuse_req_t req, fuse_ino_t, int, fuse_file_info*) {
  ReplyStatus(req, Guard([&] { return FsOf(req).Sync(); }));
}

Result<AllocateMode> DecodeAllocateFlags(int flags) {
  switch (flags) {
    case 0:
      return AllocateMode::kReserve;
    case FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kReserveKeepSize;
    case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kPunchHole;
    case FALLOC_FL_ZERO_RANGE:
      return AllocateMode::kZero;
    case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
      return AllocateMode::kZeroKeepSize;
    default:
      return Fail(EOPNOTSUPP, {});
  }
}

void OnAllocate(fuse_req_t req, fuse_ino_t ino, int flags, off_t offset,
                off_t length, fuse_file_info*) {
  bool lost = false;
  Caller caller = CallerOf(req);
  caller.lost_privileges = &lost;
  const auto allocated = Guard([&]() -> Status {
    const AllocateMode mode = TRY(DecodeAllocateFlags(flags));
    return FsOf(req).Allocate(caller, Ino{ino}, static_cast<uint64_t>(offset),
                              static_cast<uint64_t>(length), mode);
  });
  if (lost) ForgetMode(req, ino);
  ReplyStatus(req, allocated);
}

void OnCopyRange(fuse_req_t req, fuse_ino_t from, off_t from_offset,
                 fuse_file_info*, fuse_ino_t to, off_t to_offset,
                 fuse_file_info*, size_t length, int) {
  bool lost = false;
  Caller caller = CallerOf(req);
  caller.lost_privileges = &lost;
  const auto copied = Guard([&] {
    return FsOf(req).CopyRange(caller, Ino{from},
                               static_cast<uint64_t>(from_offset), Ino{to},
                               static_cast<uint64_t>(to_offset), length);
  });
  if (lost) ForgetMode(req, to);
  ReplyCount(req, copied);
}

/// The hole that the answer `at` to a seek from `offset` tells of; empty: none.
Range HoleOf(Filesystem& fs, Ino ino, uint64_t offset, int whence,
             const Result<uint64_t>& at) {
  constexpr uint64_t kEnd = INT64_MAX;
  if (whence == SEEK_DATA) return {offset, at.value_or(kEnd)};
  const bool is_end = at && !fs.Seek(ino, *at, SEEK_HOLE);
  if (!at || is_end) return {};
  return {*at, fs.Seek(ino, *at, SEEK_DATA).value_or(kEnd)};
}

/// Has the kernel write back what was stored through mappings into a hole.
/// False: it cannot be waited for.
bool WriteBack(fuse_session* session, fuse_ino_t ino, Range hole) {
  if (!BeginStandIn()) return false;
  (void)fuse_lowlevel_notify_inval_inode(
      session, ino, static_cast<off_t>(hole.from),
      static_cast<off_t>(hole.to - hole.from));
  EndStandIn();
  return true;
}

/// The kernel does not look at its own pages: what a process stored through a
/// mapping is data before it is written back.
Result<uint64_t> SeekWithMappings(fuse_req_t req, fuse_ino_t ino,
                                  uint64_t offset, int whence) {
  Filesystem& fs = FsOf(req);
  for (;;) {
    auto at = fs.Seek(Ino{ino}, offset, whence);
    if (!at && at.error().code != ENXIO) return at;
    const Range hole = HoleOf(fs, Ino{ino}, offset, whence, at);
    if (hole.from >= hole.to) return at;
    if (!WriteBack(ContextOf(req).session, ino, hole)) return at;
    auto again = fs.Seek(Ino{ino}, offset, whence);
    if (again.value_or(hole.to) == at.value_or(hole.to)) return again;
  }
}

void OnSeek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
            fuse_file_info*) {
  ReplyPosition(req, Guard([&] {
                  return SeekWithMappings(
                      req, ino, static_cast<uint64_t>(offset), whence);
                }));
}

void OnStatFs(fuse_req_t req, fuse_ino_t) {
  ReplyStatFs(req, Guard([&] { return FsOf(req).StatFs(); }));
}

}  // namespace

// Left out on purpose: access (default_permissions), locks (the kernel keeps
// them), ioctl (ENOTTY), release and flush (there are no handles).
const fuse_lowlevel_ops& FuseOps() {
  static const fuse_lowlevel_ops kOps = {
      .init = OnInit,
      .lookup = OnLookup,
      .forget = OnForget,
      .getattr = OnGetAttr,
      .setattr = OnSetAttr,
      .readlink = OnReadLink,
      .mknod = OnMknod,
      .mkdir = OnMkdir,
      .unlink = OnUnlink,
      .rmdir = OnRmdir,
      .symlink = OnSymlink,
      .rename = OnRename,
      .link = OnLink,
      .open = OnOpen,
      .read = OnRead,
      .write = OnWrite,
      .fsync = OnFsync,
      .opendir = OnOpenDir,
      .readdir = OnReadDir,
      .fsyncdir = OnFsync,
      .statfs = OnStatFs,
      .setxattr = OnSetXattr,
      .getxattr = OnGetXattr,
      .listxattr = OnListXattr,
      .removexattr = OnRemoveXattr,
      .create = OnCreate,
      .forget_multi = OnForgetMulti,
      .fallocate = OnAllocate,
      .readdirplus = OnReadDirPlus,
      .copy_file_range = OnCopyRange,
      .lseek = OnSeek,
  };
  return kOps;
}

}  // namespace txfs

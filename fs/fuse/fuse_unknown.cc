#include "fs/fuse/fuse_unknown.h"

#include <linux/fuse.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "fs/fuse/fuse_reply.h"

namespace txfs {
namespace {

// Linux 6.6; not in Debian 12's headers.
constexpr uint32_t kStatx = 52;

/// fuse_statx_out of the same version. It has a struct statx, bit for bit.
struct StatxOut {
  uint64_t attr_valid;
  uint32_t attr_valid_nsec;
  uint32_t flags;
  uint64_t spare[2];
  struct statx stat;
};
static_assert(sizeof(struct statx) == 256);
static_assert(sizeof(StatxOut) == 288);

struct CreatedOut {
  fuse_entry_out entry;
  fuse_open_out open;
};

/// False: the kernel does not take the reply.
bool Send(int fd, uint64_t unique, int error, const void* body, size_t size) {
  fuse_out_header header{.len = static_cast<uint32_t>(sizeof header + size),
                         .error = -error,
                         .unique = unique};
  const iovec parts[] = {{&header, sizeof header},
                         {const_cast<void*>(body), size}};
  return ::writev(fd, parts, size == 0 ? 1 : 2) >= 0;
}

void SendError(FuseContext& context, int fd, uint64_t unique,
               const Error& error) {
  Send(fd, unique, ReplyErrno(error), nullptr, 0);
  if (error.code == ESTALE && context.stale_told != nullptr) {
    context.stale_told->LookAgain();
  }
}

statx_timestamp StatxTime(Timestamp time) {
  statx_timestamp out{};
  out.tv_sec = time.sec;
  out.tv_nsec = time.nsec;
  return out;
}

struct statx StatxOf(const struct stat& st, std::optional<Timestamp> born) {
  struct statx out{};
  out.stx_mask = STATX_BASIC_STATS;
  out.stx_blksize = static_cast<uint32_t>(st.st_blksize);
  out.stx_nlink = static_cast<uint32_t>(st.st_nlink);
  out.stx_uid = st.st_uid;
  out.stx_gid = st.st_gid;
  out.stx_mode = static_cast<uint16_t>(st.st_mode);
  out.stx_ino = st.st_ino;
  out.stx_size = static_cast<uint64_t>(st.st_size);
  out.stx_blocks = static_cast<uint64_t>(st.st_blocks);
  out.stx_atime = StatxTime(Timestamp::From(st.st_atim));
  out.stx_mtime = StatxTime(Timestamp::From(st.st_mtim));
  out.stx_ctime = StatxTime(Timestamp::From(st.st_ctim));
  out.stx_rdev_major = major(st.st_rdev);
  out.stx_rdev_minor = minor(st.st_rdev);
  if (born) {
    out.stx_mask |= STATX_BTIME;
    out.stx_btime = StatxTime(*born);
  }
  return out;
}

fuse_attr AttrOut(const struct stat& st) {
  return {.ino = st.st_ino,
          .size = static_cast<uint64_t>(st.st_size),
          .blocks = static_cast<uint64_t>(st.st_blocks),
          .atime = static_cast<uint64_t>(st.st_atim.tv_sec),
          .mtime = static_cast<uint64_t>(st.st_mtim.tv_sec),
          .ctime = static_cast<uint64_t>(st.st_ctim.tv_sec),
          .atimensec = static_cast<uint32_t>(st.st_atim.tv_nsec),
          .mtimensec = static_cast<uint32_t>(st.st_mtim.tv_nsec),
          .ctimensec = static_cast<uint32_t>(st.st_ctim.tv_nsec),
          .mode = st.st_mode,
          .nlink = static_cast<uint32_t>(st.st_nlink),
          .uid = st.st_uid,
          .gid = st.st_gid,
          .rdev = static_cast<uint32_t>(st.st_rdev),
          .blksize = static_cast<uint32_t>(st.st_blksize),
          .flags = 0};
}

void AnswerStatx(FuseContext& context, int fd, const fuse_in_header& in) {
  std::optional<Timestamp> born;
  const auto st = Guard([&]() -> Result<struct stat> {
    // At worst it is not known.
    if (const auto known = context.fs.BirthOf(Ino{in.nodeid})) born = *known;
    return context.fs.GetAttr(Ino{in.nodeid});
  });
  if (!st) return SendError(context, fd, in.unique, st.error());
  StatxOut out{};
  out.attr_valid = static_cast<uint64_t>(kForever);
  out.stat = StatxOf(*st, born);
  Send(fd, in.unique, 0, &out, sizeof out);
}

void AnswerTmpfile(FuseContext& context, int fd, const fuse_in_header& in,
                   const fuse_create_in& create) {
  // Nobody is asked before the link, so no wait is needed.
  const Caller caller{
      .pid = in.pid, .uid = in.uid, .gid = in.gid, .umask = create.umask};
  const auto node = Guard([&] {
    return context.fs.CreateUnnamed(caller, Ino{in.nodeid}, create.mode);
  });
  if (!node) return SendError(context, fd, in.unique, node.error());
  CreatedOut out{};
  out.entry.nodeid = Raw(node->ino);
  out.entry.generation = node->generation;
  out.entry.attr_valid = static_cast<uint64_t>(kForever);
  out.entry.attr = AttrOut(node->st);
  out.open.open_flags = FOPEN_KEEP_CACHE;
  if (!Send(fd, in.unique, 0, &out, sizeof out)) {
    context.fs.Forget(node->ino, 1);
  }
}

}  // namespace

bool AnswerUnknown(FuseContext& context, int fd, ByteSpan request) noexcept {
  fuse_in_header in{};
  if (request.size() < sizeof in) return false;
  std::memcpy(&in, request.data(), sizeof in);
  if (in.opcode == kStatx) {
    AnswerStatx(context, fd, in);
    return true;
  }
  fuse_create_in create{};
  if (in.opcode != FUSE_TMPFILE || request.size() < sizeof in + sizeof create) {
    return false;
  }
  std::memcpy(&create, request.data() + sizeof in, sizeof create);
  AnswerTmpfile(context, fd, in, create);
  return true;
}

}  // namespace txfs

#include "fs/fuse/fuse_reply.h"

#include <cerrno>

#include "fs/fuse/fuse_ops.h"

namespace txfs {
namespace {

void ReplyError(fuse_req_t req, const Error& error) {
  const auto& context = *static_cast<FuseContext*>(fuse_req_userdata(req));
  fuse_reply_err(req, ReplyErrno(error));
  // The kernel asks again only if it is told to.
  if (error.code == ESTALE && context.stale_told != nullptr) {
    context.stale_told->LookAgain();
  }
}

}  // namespace

int ReplyErrno(const Error& error) {
  return error.code > 0 && error.code < 1000 ? error.code : EIO;
}

fuse_entry_param EntryOf(const Node& node) {
  fuse_entry_param entry{};
  entry.ino = Raw(node.ino);
  entry.generation = node.generation;
  entry.attr = node.st;
  entry.attr_timeout = kForever;
  entry.entry_timeout = node.fleeting ? 0 : kForever;
  return entry;
}

void ReplyStatus(fuse_req_t req, const Status& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_err(req, 0);
}

void ReplyAttr(fuse_req_t req, const Result<struct stat>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_attr(req, &*result, kForever);
}

void ReplyText(fuse_req_t req, const Result<std::string>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_readlink(req, result->c_str());
}

void ReplyCount(fuse_req_t req, const Result<size_t>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_write(req, *result);
}

void ReplyPosition(fuse_req_t req, const Result<uint64_t>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_lseek(req, static_cast<off_t>(*result));
}

void ReplyStatFs(fuse_req_t req,
                 const Result<struct statvfs>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  fuse_reply_statfs(req, &*result);
}

void ReplyXattr(fuse_req_t req, const Result<std::string>& result,
                size_t room) noexcept {
  if (!result) return ReplyError(req, result.error());
  if (room == 0) {
    fuse_reply_xattr(req, result->size());
  } else if (result->size() > room) {
    fuse_reply_err(req, ERANGE);
  } else {
    fuse_reply_buf(req, result->data(), result->size());
  }
}

void ReplyEntry(fuse_req_t req, Filesystem& fs,
                const Result<Node>& result) noexcept {
  if (!result) return ReplyError(req, result.error());
  const fuse_entry_param entry = EntryOf(*result);
  if (fuse_reply_entry(req, &entry) != 0) fs.Forget(result->ino, 1);
}

void ReplyLookup(fuse_req_t req, Filesystem& fs, Ino parent,
                 const Result<Node>& result) noexcept {
  if (result || result.error().code != ENOENT || !fs.ReportsNames(parent)) {
    return ReplyEntry(req, fs, result);
  }
  const fuse_entry_param absent = EntryOf(Node{});
  fuse_reply_entry(req, &absent);
}

void ReplyCreated(fuse_req_t req, Filesystem& fs, const Result<Node>& result,
                  const fuse_file_info& request) noexcept {
  if (!result) return ReplyError(req, result.error());
  const fuse_entry_param entry = EntryOf(*result);
  // No RELEASE will come, so there is no handle to give out.
  fuse_file_info open = request;
  open.fh = 0;
  open.keep_cache = 1;
  if (fuse_reply_create(req, &entry, &open) != 0) fs.Forget(result->ino, 1);
}

}  // namespace txfs

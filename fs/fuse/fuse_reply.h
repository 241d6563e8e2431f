#pragma once

#include <exception>
#include <new>
#include <type_traits>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"
#include "journal/support/result.h"

namespace txfs {

/// The timeout of cached entries and attributes, seconds: practically infinite,
/// because txfs invalidates them. Finite, because libfuse converts it to an
/// integer.
inline constexpr double kForever = 1e9;

/// The result of `call`. Turns an exception into an error, so that only one
/// request fails, not the daemon.
template <class Call>
std::invoke_result_t<Call> Guard(Call call) noexcept {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Fail(ENOMEM, {});
  } catch (const std::exception&) {
    return Fail(EIO, {});
  }
}

/// The errno of `error`, within what the kernel takes.
int ReplyErrno(const Error& error);

// Each function below answers the request with the value or the errno of
// `result`. Do not hold a filesystem lock: the kernel acts on a reply at once.

void ReplyStatus(fuse_req_t req, const Status& result) noexcept;
void ReplyAttr(fuse_req_t req, const Result<struct stat>& result) noexcept;
void ReplyText(fuse_req_t req, const Result<std::string>& result) noexcept;
void ReplyCount(fuse_req_t req, const Result<size_t>& result) noexcept;
void ReplyPosition(fuse_req_t req, const Result<uint64_t>& result) noexcept;
void ReplyStatFs(fuse_req_t req, const Result<struct statvfs>& result) noexcept;
/// `room`: size of the caller's buffer; 0 asks for the value's size.
void ReplyXattr(fuse_req_t req, const Result<std::string>& result,
                size_t room) noexcept;

// The functions below pass a counted lookup to the kernel. If the request was
// interrupted and the kernel does not take the reply, they give the lookup back
// to `fs`.

void ReplyEntry(fuse_req_t req, Filesystem& fs,
                const Result<Node>& result) noexcept;
/// As ReplyEntry, but ENOENT is a reply that the kernel caches, if the
/// filesystem reports new names in the directory `parent`.
void ReplyLookup(fuse_req_t req, Filesystem& fs, Ino parent,
                 const Result<Node>& result) noexcept;
void ReplyCreated(fuse_req_t req, Filesystem& fs, const Result<Node>& result,
                  const fuse_file_info& request) noexcept;

/// `node` for replies, with infinite timeouts; the entry timeout of a fleeting
/// node is 0.
fuse_entry_param EntryOf(const Node& node);

}  // namespace txfs

#pragma once

#include <exception>
#include <new>
#include <type_traits>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"
#include "journal/support/result.h"

namespace txfs {

/// How long the kernel may keep entries and attributes, in seconds: for ever.
/// It is told when they change. (Finite, as libfuse makes an integer of it.)
inline constexpr double kForever = 1e9;

/// The result of `call`; an exception becomes an error, so that one request
/// fails and not the daemon.
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

// Each of these answers the request with the value or the errno of `result`.
// No filesystem lock may be held: the kernel acts on a reply at once.

void ReplyStatus(fuse_req_t req, const Status& result) noexcept;
void ReplyAttr(fuse_req_t req, const Result<struct stat>& result) noexcept;
void ReplyText(fuse_req_t req, const Result<std::string>& result) noexcept;
void ReplyCount(fuse_req_t req, const Result<size_t>& result) noexcept;
void ReplyPosition(fuse_req_t req, const Result<uint64_t>& result) noexcept;
void ReplyStatFs(fuse_req_t req, const Result<struct statvfs>& result) noexcept;
/// `room` is what the caller has for the value; 0 asks for its size.
void ReplyXattr(fuse_req_t req, const Result<std::string>& result,
                size_t room) noexcept;

// These pass a counted lookup to the kernel, and give it back to `fs` when the
// request was interrupted and nobody takes the reply.

void ReplyEntry(fuse_req_t req, Filesystem& fs,
                const Result<Node>& result) noexcept;
/// As ReplyEntry, but ENOENT is an answer that the kernel remembers.
void ReplyLookup(fuse_req_t req, Filesystem& fs,
                 const Result<Node>& result) noexcept;
void ReplyCreated(fuse_req_t req, Filesystem& fs, const Result<Node>& result,
                  const fuse_file_info& request) noexcept;

/// `node` as replies carry it, with infinite timeouts.
fuse_entry_param EntryOf(const Node& node);

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// openat(2) with O_CLOEXEC, again after EINTR.
Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags,
                        mode_t mode = 0);

/// Opens the absolute `path`, in which no name is a symbolic link (ELOOP), for
/// its name alone (O_PATH).
Result<UniqueFd> OpenName(const std::string& path, int flags);

// What lies below a store is hostile: whoever made the store may have put a
// symbolic link, a pipe or a device where a file or directory of its own should
// be. The functions below take a `path` beneath the directory `dir`, and follow
// no symbolic link, in the middle of the path or at its end. With AT_FDCWD for
// `dir` the path is any path, and the directories in it may be symbolic links.

/// Opens a regular file with the `flags` of open(2), never waiting. EBADMSG,
/// with the path: it is something else; ELOOP: so is a directory on the way.
Result<UniqueFd> OpenFileBelow(int dir, const std::string& path, int flags,
                               mode_t mode = 0);
/// The same of a file that is to be written to: it has no other name. O_TRUNC
/// comes after that was looked at.
Result<UniqueFd> OpenOwnFileBelow(int dir, const std::string& path, int flags,
                                  mode_t mode = 0);
/// Opens a directory. ENOTDIR, with the path: it is something else.
Result<UniqueFd> OpenDirectoryBelow(int dir, const std::string& path,
                                    int flags = 0);
/// Of a symbolic link, that of the link. ENOENT.
Result<struct stat> StatBelow(int dir, const std::string& path);
/// renameat(2) within `dir`.
Status RenameBelow(int dir, const std::string& from, const std::string& to);

/// Reads until `out` is full or the file ends; returns the bytes read.
Result<size_t> ReadFully(int fd, uint64_t offset, MutableByteSpan out);

/// Writes all of `bytes`, or fails; after a failure any part may have been
/// written.
Status WriteFully(int fd, uint64_t offset, ByteSpan bytes);

/// A whole regular file, at most `limit` bytes. EFBIG beyond, and for a file of
/// more than 64 MiB that is nearly all holes. With AT_FDCWD it may be a pipe.
Result<std::string> ReadWholeFile(int dir, const std::string& path,
                                  size_t limit = 64 << 20);

/// What the name of a file ends in that is to replace another.
inline constexpr std::string_view kTemporarySuffix = ".new";

/// Writes a temporary neighbour, syncs it and renames it over `path`. After a
/// crash `path` has the old or the new content. A neighbour that is no regular
/// file of ours, or has another name, is removed, not written to.
Status PutFile(int dir, const std::string& path, std::string_view content,
               mode_t mode = 0600);
/// Takes what a later PutFile needs for `bytes` bytes of content, as its
/// temporary neighbour; not durable. ENOSPC, EDQUOT.
Status MakeRoomFor(int dir, const std::string& path, uint64_t bytes);
/// The same as PutFile, and syncs the directory: the new content.
Status ReplaceFile(int dir, const std::string& path, std::string_view content,
                   mode_t mode = 0600);

/// Deletes the tree at `path` below `dir` without following symlinks. ENOENT is
/// success.
Status RemoveTree(int dir, const std::string& path);

/// Names in a directory, sorted, without "." and "..".
Result<std::vector<std::string>> ListNames(int dir, const std::string& path);

Result<bool> Exists(int dir, const std::string& path);

/// Bytes of blocks of the tree at `path`, without what is closed to us; 0 when
/// there is none.
Result<uint64_t> BytesOnDisk(int dir, const std::string& path);

/// fsync(2) of a directory.
Status SyncDirectory(int dir, const std::string& path);

/// The path of an open file, for messages.
std::string PathOfFd(int fd);

/// Creates directory `path` below `dir` unless it is there.
Status MakeDirectoryAt(int dir, const std::string& path, mode_t mode);

}  // namespace txfs

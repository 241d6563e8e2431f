#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// openat(2) with O_CLOEXEC; retries after EINTR.
Result<UniqueFd> OpenAt(int dir, const std::string& path, int flags,
                        mode_t mode = 0);

/// Opens the absolute `path` with O_PATH. ELOOP if a symbolic link is in it.
Result<UniqueFd> OpenName(const std::string& path, int flags);

// The content of a store is not trusted: its maker may have put a symbolic
// link, a pipe or a device in the place of a file or directory. The functions
// below take a `path` below the directory `dir` and follow no symbolic link in
// it. Exception: with AT_FDCWD for `dir`, `path` is any path, and only its last
// component must not be a symbolic link.

/// Opens a regular file with the `flags` of open(2); never blocks. EBADMSG,
/// with the path, if it is not a regular file; ELOOP if a directory in the path
/// is a symbolic link.
Result<UniqueFd> OpenFileBelow(int dir, const std::string& path, int flags,
                               mode_t mode = 0);
/// As OpenFileBelow, for a file to write to: EBADMSG if it has other hard
/// links. O_TRUNC is applied after that check.
Result<UniqueFd> OpenOwnFileBelow(int dir, const std::string& path, int flags,
                                  mode_t mode = 0);
/// Opens a directory. ENOTDIR, with the path, if it is not one.
Result<UniqueFd> OpenDirectoryBelow(int dir, const std::string& path,
                                    int flags = 0);
/// lstat(2). ENOENT.
Result<struct stat> StatBelow(int dir, const std::string& path);
/// renameat(2) within `dir`.
Status RenameBelow(int dir, const std::string& from, const std::string& to);

/// Reads until `out` is full or the file ends; returns the bytes read.
Result<size_t> ReadFully(int fd, uint64_t offset, MutableByteSpan out);

/// Writes all of `bytes`, or fails; after a failure any part may have been
/// written.
Status WriteFully(int fd, uint64_t offset, ByteSpan bytes);

/// Reads a whole regular file of at most `limit` bytes. EFBIG for a larger
/// file, and for one of more than 64 MiB that is nearly all holes. With
/// AT_FDCWD, also reads other files, such as pipes.
Result<std::string> ReadWholeFile(int dir, const std::string& path,
                                  size_t limit = 64 << 20);

/// Suffix of a file that will replace the file without it.
inline constexpr std::string_view kTemporarySuffix = ".new";

/// Writes a temporary file beside `path`, syncs it and renames it to `path`.
/// After a crash, `path` has the old or the new content. If the temporary file
/// exists but is not a regular file of the calling user with one hard link, it
/// is removed first.
Status PutFile(int dir, const std::string& path, std::string_view content,
               mode_t mode = 0600);
/// Reserves the blocks that a later PutFile of `bytes` bytes needs, in its
/// temporary file. Not durable. ENOSPC, EDQUOT.
Status MakeRoomFor(int dir, const std::string& path, uint64_t bytes);
/// As PutFile, and syncs the directory: after a crash, `path` has the new
/// content.
Status ReplaceFile(int dir, const std::string& path, std::string_view content,
                   mode_t mode = 0600);

/// Deletes the tree at `path` below `dir` without following symlinks. ENOENT is
/// success.
Status RemoveTree(int dir, const std::string& path);

/// Names in a directory, sorted, without "." and "..".
Result<std::vector<std::string>> ListNames(int dir, const std::string& path);

Result<bool> Exists(int dir, const std::string& path);

/// Bytes of blocks of the tree at `path`; 0 if there is none. Leaves out the
/// content of directories that cannot be read.
Result<uint64_t> BytesOnDisk(int dir, const std::string& path);

/// fsync(2) of a directory.
Status SyncDirectory(int dir, const std::string& path);

/// The path of an open file, for messages.
std::string PathOfFd(int fd);

/// Creates directory `path` below `dir` unless it exists.
Status MakeDirectoryAt(int dir, const std::string& path, mode_t mode);

}  // namespace txfs

#pragma once

#include <cstdint>
#include <string_view>

namespace txfs {

// What decoders demand of names and numbers, which otherwise would be used as
// they are: docs/format.md, "What is rejected".

/// The longest name in a directory, and of an attribute, bytes.
inline constexpr size_t kStoredNameMax = 255;
/// The longest target of a symbolic link, bytes.
inline constexpr size_t kStoredTargetMax = 4095;
/// Offsets and sizes in files, inode numbers of the overlay and LSNs are not
/// larger.
inline constexpr uint64_t kStoredNumberMax = INT64_MAX;

/// Whether `name` may be that of an entry in a directory: it has a length, and
/// no NUL and no slash, and is neither "." nor "..".
[[nodiscard]] bool IsEntryName(std::string_view name);

/// Whether `path` leads down from a directory, by names as above, which may be
/// longer where the base's filesystem has such; "" is the directory itself.
[[nodiscard]] bool IsPathBelow(std::string_view path);

/// Whether the bytes [offset, offset + length) may be of a file.
[[nodiscard]] bool IsRangeOfFile(uint64_t offset, uint64_t length);

}  // namespace txfs

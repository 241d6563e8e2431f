#pragma once

#include <cstdint>
#include <string_view>

namespace txfs {

// Limits for stored names and numbers, which decoders enforce: docs/format.md,
// "What is rejected".

/// The longest name of a directory entry or extended attribute, bytes.
inline constexpr size_t kStoredNameMax = 255;
/// The longest target of a symbolic link, bytes.
inline constexpr size_t kStoredTargetMax = 4095;
/// The largest offset or size in a file, inode number of the overlay, and LSN.
inline constexpr uint64_t kStoredNumberMax = INT64_MAX;

/// Whether `name` is a valid name of a directory entry: 1 to kStoredNameMax
/// bytes, no NUL and no slash, neither "." nor "..".
[[nodiscard]] bool IsEntryName(std::string_view name);

/// Whether `path` is a valid path below a directory: names as above, which may
/// be longer where the base's filesystem allows it. "" is the directory itself.
[[nodiscard]] bool IsPathBelow(std::string_view path);

/// Whether a file can have the bytes [offset, offset + length).
[[nodiscard]] bool IsRangeOfFile(uint64_t offset, uint64_t length);

}  // namespace txfs

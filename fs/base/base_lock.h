#pragma once

#include <cstdint>
#include <string>

#include "fs/base/base_directory.h"

namespace txfs {

/// The attribute of chattr(1) that keeps everybody, root included, from
/// changing an object. An append-only file grows, and an append-only directory
/// gets new names; nothing else of them changes.
enum class BaseLock : uint8_t { kNone, kAppendOnly, kImmutable };

/// That of `name` in `dir`, or of the open object `dir` if `name` is empty, as
/// far as statx(2) reports it.
[[nodiscard]] BaseLock LockOf(int dir, const std::string& name);
/// That of the base object at `path`; kNone if it is gone.
[[nodiscard]] BaseLock LockOf(const BaseDirectory& base,
                              const std::string& path);

}  // namespace txfs

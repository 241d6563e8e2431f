#pragma once

#include <cstdint>
#include <string_view>

namespace txfs {

/// What a name is to txfs, for which `.txfs` and each name that begins with
/// `.txfs-vault` decide something.
enum class NameKind : uint8_t {
  kPlain,   ///< nothing
  kOwn,     ///< one of these
  kFolded,  ///< one of these in a directory that folds case (FoldsCase)
};
[[nodiscard]] NameKind KindOfName(std::string_view name);

}  // namespace txfs

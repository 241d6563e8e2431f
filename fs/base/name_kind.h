#pragma once

#include <cstdint>
#include <string_view>

namespace txfs {

/// Whether a name is reserved for txfs: `.txfs`, and names that begin with
/// `.txfs-vault`.
enum class NameKind : uint8_t {
  kPlain,   ///< not reserved
  kOwn,     ///< reserved
  kFolded,  ///< reserved in a directory that folds case (FoldsCase)
};
[[nodiscard]] NameKind KindOfName(std::string_view name);

}  // namespace txfs

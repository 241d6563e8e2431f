#pragma once

#include <string_view>

namespace txfs::cli {

/// Whether `index`, the content of a file .git/index, has only files of the
/// work tree, and no submodule; "" has none. The format is that of git's
/// Documentation/gitformat-index.txt; of version 4 the names are not read, so
/// such an index is not plain.
[[nodiscard]] bool IsPlainIndex(std::string_view index);

}  // namespace txfs::cli

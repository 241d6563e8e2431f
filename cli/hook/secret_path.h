#pragma once

#include <string_view>

namespace txfs::cli {

/// Whether the name of `path`, or the directory that it is in, is one of files
/// with keys or passwords. `path` is absolute and normal. Reads only the text.
[[nodiscard]] bool IsSecretPath(std::string_view path);

}  // namespace txfs::cli

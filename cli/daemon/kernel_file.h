#pragma once

#include <string>
#include <string_view>

namespace txfs::cli {

// Files that the kernel makes while they are read, and that say that their size
// is 0: those of /proc and of control groups.

/// "" if it cannot be read.
[[nodiscard]] std::string ReadKernelFile(const std::string& path);
[[nodiscard]] bool WriteKernelFile(const std::string& path,
                                   std::string_view text);

}  // namespace txfs::cli

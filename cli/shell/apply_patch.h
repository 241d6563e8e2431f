#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace txfs::cli {

/// What a file tool does to a file.
struct FileUse {
  enum class What : uint8_t { kWrite, kRemove, kMove };
  What what = What::kWrite;
  std::string path;           ///< as the tool has it: absolute, or relative
  std::string new_path = {};  ///< of kMove
};

/// What a patch in the format of apply_patch does to files.
struct PatchReading {
  std::vector<FileUse> files;
  /// Whether a line that names a file begins or ends with white space other
  /// than blank, tab and CR: hosts differ in whether they remove it.
  bool has_odd_blanks = false;
};
/// Reads the lines that name files, and not what is between them.
[[nodiscard]] PatchReading FilesInPatch(std::string_view patch);

}  // namespace txfs::cli

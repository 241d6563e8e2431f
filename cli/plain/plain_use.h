#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/command.h"

namespace txfs::cli {

/// What a command does to files, if that is all it does: its program, and each
/// of its options, is one that is known to run nothing and to write nothing
/// else.
struct PlainUse {
  enum class How : uint8_t {
    kDirectory,  ///< reads it, or looks at all below it
    kFile,       ///< reads it; it is no directory
    kWrite,      ///< makes the file, or writes to what a link leads to
    kMake,       ///< makes a directory
    kRemove,     ///< also all below it
    kMode,       ///< changes the permissions
    kCopy,       ///< from `file` to `to`, which may be a directory
    kMove,       ///< the same
    kEnter,      ///< makes it the working directory
  };
  struct File {
    How how = How::kDirectory;
    policy::Word file;
    policy::Word to = {};
  };
  std::string searched;  ///< its name, if the shell looks for it in PATH
  std::vector<File> files;
  bool changes = false;
  bool is_git = false;
  bool writes_index = false;  ///< git: so it may run a hook
};

/// None: it may do anything. Looks at no file.
[[nodiscard]] std::optional<PlainUse> UseOf(const policy::Command& command);
/// Whether `assignment`, NAME=VALUE, changes nothing but the look of output.
[[nodiscard]] bool IsHarmlessVariable(std::string_view assignment);
/// Whether a shell may expand `word` to other words.
[[nodiscard]] bool IsPattern(const policy::Word& word);

}  // namespace txfs::cli

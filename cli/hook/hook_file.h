#pragma once

#include <optional>
#include <string>

#include "cli/hook/hosts.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Where a host has the configuration of its hooks.
enum class HookScope : uint8_t {
  kUser,     ///< of all projects of the user
  kProject,  ///< of the project in the working directory
};

/// The file of a host's configuration, below a directory that is opened as it
/// is; nothing in `name` may be a symbolic link.
struct HookFile {
  std::string directory, name;

  [[nodiscard]] std::string path() const;
};

/// `directory`: the project's.
[[nodiscard]] HookFile FileOf(const HookHost& host, HookScope scope,
                              const std::string& directory);

/// None: there is no such file.
Result<std::optional<std::string>> ReadHookFile(const HookFile& file);
/// Makes the directories on the way to it, too.
Status WriteHookFile(const HookFile& file, HookScope scope,
                     const std::string& text);
/// Removes the file, and the directories on the way to it that are empty then.
Status RemoveHookFile(const HookFile& file);

}  // namespace txfs::cli

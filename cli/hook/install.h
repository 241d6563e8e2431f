#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/hook/hosts.h"
#include "cli/locate/context.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Where a host has the configuration of its hooks.
enum class HookScope : uint8_t {
  kUser,     ///< of all projects of the user
  kProject,  ///< of the project in the working directory
};

/// `text`, the configuration of `host` (none: there is no file), with the
/// entries of the hook; the same text if it has them. Fails if `text` is not
/// JSON of the expected shape. The error does not name the file.
Result<std::string> WithHook(const HookHost& host,
                             const std::optional<std::string>& text);
/// `text` without entries that call the hook of `host`; none: nothing else is
/// in it.
Result<std::optional<std::string>> WithoutHook(const HookHost& host,
                                               const std::string& text);

/// Whether the configuration of `host` has an entry that calls the hook.
[[nodiscard]] bool IsHookInstalled(const HookHost& host, HookScope scope,
                                   const std::string& directory);

struct HookInstallArguments {
  std::string host;
  HookScope scope = HookScope::kUser;
  bool dry_run = false;  ///< print the file, and change nothing
};
Result<int> RunHookInstall(const Context& context,
                           const HookInstallArguments& arguments);
Result<int> RunHookUninstall(const Context& context,
                             const HookInstallArguments& arguments);

}  // namespace txfs::cli

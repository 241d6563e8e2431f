#pragma once

#include <optional>
#include <string>

#include "cli/hook/hook_file.h"
#include "cli/hook/hosts.h"
#include "cli/locate/context.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// `text`, the configuration of `host` (none: there is no file), with the
/// entries of the hook; the same text if it has them. Never none. Fails if
/// `text` is not JSON of the expected shape. The error does not name the file.
Result<std::optional<std::string>> WithHook(
    const HookHost& host, const std::optional<std::string>& text);
/// `text` without entries that call the hook of `host`; none: nothing else is
/// in it.
Result<std::optional<std::string>> WithoutHook(
    const HookHost& host, const std::optional<std::string>& text);

struct HookInstallArguments {
  std::string host;
  HookScope scope = HookScope::kUser;
  bool removes = false;  ///< take the hook out
  bool dry_run = false;  ///< print the file, and change nothing
};
Result<int> RunHookInstall(const Context& context,
                           const HookInstallArguments& arguments);

}  // namespace txfs::cli

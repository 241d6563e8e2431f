#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/hook/hook_file.h"
#include "cli/hook/hosts.h"

namespace txfs::cli {

/// A file in which a host finds the hook.
struct InstalledHook {
  HookScope scope = HookScope::kUser;
  std::string file;
  /// That its entries name: "txfs", or a path.
  std::vector<std::string> programs;
  /// Why the host does not call the hook for each call that is to be judged,
  /// and what to do; "": it does.
  std::string fault, remedy;
};

/// Where `host` finds the hook, of the user and of the project `directory`. Not
/// noticed: what the host reads elsewhere, as from its command line.
[[nodiscard]] std::vector<InstalledHook> FindInstalled(
    const HookHost& host, const std::string& directory);

/// What the configuration `text` lacks; none if it does not name the hook.
/// `scope` is of the remedy.
[[nodiscard]] std::optional<InstalledHook> ReadInstalled(
    const HookHost& host, HookScope scope, const std::string& text);

/// The program of a handler that calls the hook of `host`; "": it does not.
[[nodiscard]] std::string ProgramOfHook(const HookHost& host,
                                        const Document& handler);
/// Whether `text` begins as the program that an installation writes.
[[nodiscard]] bool IsOurProgram(const HookHost& host, const std::string& text);

}  // namespace txfs::cli

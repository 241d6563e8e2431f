#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/run.h"
#include "journal/support/result.h"
#include "policy/section.h"

namespace txfs::cli {

/// Files of the user's configuration for runs: profiles and config.toml.

/// Resolves the way to `path`. EPERM if a part of it lies in a txfs mount or
/// another user's, where a run could change it.
Result<std::string> CheckWayToConfig(const std::string& path);

/// Reads the file `path`; `what` for messages, "profile". ENOENT if it is
/// missing. EPERM if it is not a regular file of the caller's or root's that
/// nobody else can write, or CheckWayToConfig fails; EFBIG above 1 MiB.
Result<std::string> ReadConfigFile(const std::string& path,
                                   const std::string& what);

[[nodiscard]] bool IsWordCharacter(char c);
/// Whether `name` can be that of a profile or a program.
[[nodiscard]] bool IsPlainName(std::string_view name);
[[nodiscard]] bool IsVariableName(std::string_view name);
/// "~/a/b": below the home, and not the home itself.
[[nodiscard]] bool IsBelowHome(std::string_view path);
/// "~/a" with the home's path.
[[nodiscard]] std::string InHome(std::string_view path);

/// The outcome that `name` means: commit, keep or discard.
std::optional<Settle> SettleNamed(std::string_view name);

/// The texts of `key`, each as `is_valid` accepts it.
Result<std::vector<std::string>> ReadWords(const policy::Section& section,
                                           std::string_view key,
                                           bool (*is_valid)(std::string_view),
                                           std::string_view expected);
/// None: the key is missing.
Result<std::optional<Settle>> ReadSettle(const policy::Section& section,
                                         std::string_view key);

}  // namespace txfs::cli

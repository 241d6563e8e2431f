#pragma once

#include <optional>
#include <string>

#include "journal/base/result.h"

namespace txfs::cli {

/// The user's list of workspaces whose store lies elsewhere: one file per
/// workspace in StateDirectory()/stores, so that commands find the store
/// without --store.

/// Remembers `store` for `workspace`; both absolute.
Status RememberStore(const std::string& workspace, const std::string& store);

/// None when the workspace is not known.
[[nodiscard]] std::optional<std::string> RegisteredStore(
    const std::string& workspace);

}  // namespace txfs::cli

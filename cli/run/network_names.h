#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs::cli {

/// The host name `text` in lower case, without a dot at its end. Also
/// "*.example.org" for the names below example.org, and an IPv4 address.
Result<std::string> ParseHostName(std::string_view text);

/// The names in `text`, separated by commas. "profile" stands for those of the
/// profile, `of_profile`, which are always added. kUsage if there is none.
Result<std::vector<std::string>> ParseNetwork(
    std::string_view text, const std::vector<std::string>& of_profile);

/// A regular expression, basic and extended, that matches the host names that
/// `name` means, in lower case. `name`: of ParseHostName.
[[nodiscard]] std::string HostPattern(std::string_view name);

}  // namespace txfs::cli

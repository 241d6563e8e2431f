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

/// Lines of tinyproxy's configuration that lead it to the hosts `names` through
/// the proxy `url`, as in the variable http_proxy, but for those in `no_proxy`,
/// as in the variable of that name. kUsage if the proxy is of another kind than
/// http://HOST:PORT.
Result<std::string> UpstreamLines(const std::vector<std::string>& names,
                                  std::string_view url,
                                  std::string_view no_proxy);

}  // namespace txfs::cli

#pragma once

#include <cstdint>
#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// "90", "90s", "10m", "2h" in milliseconds. kUsage for another text.
Result<uint64_t> ParseDuration(const std::string& text);

/// "500", "100M", "4GiB" in bytes, at least 1. kUsage for another text.
Result<uint64_t> ParseSize(const std::string& text);

}  // namespace txfs::cli

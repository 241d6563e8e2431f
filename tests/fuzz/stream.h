#pragma once

#include <string_view>

#include "journal/base/unique_fd.h"

namespace txfs::fuzz {

/// The end of a connection at which `bytes` arrive, and then its end. Invalid
/// when they are more than a socket takes at once.
[[nodiscard]] UniqueFd StreamOf(std::string_view bytes);

}  // namespace txfs::fuzz

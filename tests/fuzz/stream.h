#pragma once

#include <cstddef>
#include <string_view>

#include "journal/support/unique_fd.h"

namespace txfs::fuzz {

/// The end of a connection at which `bytes` arrive, with so many descriptors (3
/// at most), and then its end. Invalid when they are more than a socket takes
/// at once.
[[nodiscard]] UniqueFd StreamOf(std::string_view bytes, size_t descriptors = 0);

/// How many descriptors this process has open.
[[nodiscard]] size_t CountDescriptors();

}  // namespace txfs::fuzz

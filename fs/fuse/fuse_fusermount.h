#pragma once

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// fusermount3, the set-user-ID helper that mounts for ordinary users. Nothing
/// of what it prints reaches our stderr; it is in the errors.

/// Mounts with `options` and returns the descriptor of the connection.
Result<UniqueFd> FusermountMount(const std::string& mountpoint,
                                 const std::string& options);

Status FusermountUnmount(const std::string& mountpoint, bool lazy);

}  // namespace txfs

#pragma once

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Calls fusermount3, the set-user-ID helper that mounts for ordinary users.
/// Its output does not reach our stderr; it is in the errors.

/// Mounts with `options`. Returns the descriptor of the connection.
Result<UniqueFd> FusermountMount(const std::string& mountpoint,
                                 const std::string& options);

Status FusermountUnmount(const std::string& mountpoint, bool lazy);

}  // namespace txfs

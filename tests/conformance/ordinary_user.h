#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace txfs::testing {

/// User and group of AsOrdinaryUser.
inline constexpr uid_t kOrdinaryUser = 65534;

/// Runs `work` in a child, as an ordinary user. `work` returns what is wrong;
/// empty: nothing. Needs root.
std::string AsOrdinaryUser(const std::function<std::string()>& work);

}  // namespace txfs::testing

#pragma once

#include <span>
#include <string>

#include "policy/rule.h"

namespace txfs::policy {

/// What `rules` refuse, in words for who is refused, as Markdown. Exceptions
/// are left out: nobody is to be told of a way around a rule.
[[nodiscard]] std::string InWords(std::span<const Rule> rules);

}  // namespace txfs::policy

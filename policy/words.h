#pragma once

#include <span>
#include <string>
#include <string_view>

#include "policy/limit.h"
#include "policy/rule.h"

namespace txfs::policy {

/// What `measure` counts: "files and directories", "content".
[[nodiscard]] std::string_view ThingsOf(Measure measure);

/// What `rules` and `limits` refuse, in words for who is refused, as Markdown.
/// Exceptions for programs and users are left out: nobody is to be told of a
/// way around a rule.
[[nodiscard]] std::string InWords(std::span<const Rule> rules,
                                  std::span<const Limit> limits);

}  // namespace txfs::policy

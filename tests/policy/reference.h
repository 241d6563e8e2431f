#pragma once

#include <string_view>

namespace txfs::policy::testing {

/// Whether `path` matches `pattern`, which Glob::Parse takes: by tables, from
/// the definition in policy/glob.h, with nothing in common with Glob.
[[nodiscard]] bool ReferenceMatches(std::string_view pattern, bool nocase,
                                    std::string_view path);

}  // namespace txfs::policy::testing

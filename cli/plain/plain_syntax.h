#pragma once

#include <string_view>

#include "cli/output/json.h"

namespace txfs::cli {

/// Whether `tree`, the syntax tree of `source`, is plain: simple commands in
/// lists and pipes, whose words, redirections and here-documents are literals,
/// and that set no variables but those of a language and the like. All shells
/// run such text in the same way, and what the text says is all that they run.
[[nodiscard]] bool IsPlainSyntax(const Json& tree, std::string_view source);

}  // namespace txfs::cli

#pragma once

#include <optional>

#include "fs/planning/resolution.h"

namespace txfs::cli {

/// git's three-way merge of text files. None for binary files.
Result<std::optional<MergedText>> MergeTexts(const MergeInput& input);

}  // namespace txfs::cli

#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/output/json.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Longest text that is parsed, in bytes.
inline constexpr size_t kMaxShellText = size_t{1} << 20;

/// Why there is no syntax tree.
struct ParseFailure {
  enum class Kind : uint8_t {
    kInvalid,  ///< shfmt refuses the text
    kBound,    ///< it may be valid, but exceeds a bound
    kParser,   ///< shfmt is missing or does not work: nothing is known
  };
  Kind kind = Kind::kInvalid;
  /// kInvalid: the lines before the error, which may be valid.
  std::string_view lines_before;
};

/// The syntax tree of `text` in bash's syntax, as shfmt prints it: an object of
/// the type File. Starts one process, which gets `text` on its standard input
/// and is killed after `limit`. Errors say why there is no tree: shfmt is not
/// installed, the text is too long or not valid, the time is over.
Result<Json> ParseShell(std::string_view text, std::chrono::milliseconds limit,
                        ParseFailure& failure);

}  // namespace txfs::cli

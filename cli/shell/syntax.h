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

/// What the parser may still take.
struct ParserBudget {
  /// Time of a processor. shfmt takes about 2 ms for its start and 40 us for
  /// each word, and its time grows with the square of a chain of `&&`.
  std::chrono::nanoseconds processor = std::chrono::milliseconds(100);
  /// For a parser that hangs.
  std::chrono::steady_clock::time_point deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(3);
};

/// The syntax tree of `text` in bash's syntax, as shfmt prints it: an object of
/// the type File. Starts one process, which gets `text` on its standard input,
/// is killed when it has used up `budget`, and lessens it. Errors say why there
/// is no tree: shfmt is not installed, the text is too long or not valid, the
/// budget is used up.
Result<Json> ParseShell(std::string_view text, ParserBudget& budget,
                        ParseFailure& failure);

}  // namespace txfs::cli

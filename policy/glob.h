#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs::policy {

/// A pattern of paths relative to the workspace root, as in .gitignore:
///
/// - without a slash inside, it matches a name at any depth; with one (also a
///   leading one), it is anchored at the root;
/// - `*` is any run of bytes within a name, `?` one byte, `[a-z]` and `[!a-z]`
///   one of a set, `\` makes the next character literal;
/// - `**` as a whole component is any number of components; at the end, one or
///   more: `x/**` is everything in x, but not x;
/// - `x/` is x and everything in it.
///
/// Paths are bytes: no normalisation, no locale. Matching always takes time in
/// proportion to pattern times path.
class Glob {
 public:
  /// EINVAL, with a sentence, for an invalid pattern, such as an empty one, `[`
  /// without end, `\` at the end, or more than 62 components. `nocase`: letters
  /// of ASCII match in either case.
  static Result<Glob> Parse(std::string_view pattern, bool nocase);

  [[nodiscard]] bool Matches(std::string_view path) const;
  /// Whether a path below the directory `path` might match. "": the root.
  [[nodiscard]] bool MayMatchBelow(std::string_view path) const;
  /// Texts that every matching path contains, in the form in which the class
  /// Needles reads a path: in lower case, with a slash before and after it.
  /// None is empty.
  [[nodiscard]] std::vector<std::string> Needles() const;

 private:
  struct Part {
    enum class Kind { kLiteral, kPattern, kAnyDepth } kind = Kind::kLiteral;
    std::string text;
  };
  /// The set of parts that may match next, as bits; the bit after the last part
  /// is the end.
  using States = uint64_t;

  [[nodiscard]] States Skip(States states) const;
  [[nodiscard]] States Consume(States states, std::string_view name) const;
  [[nodiscard]] States Walk(std::string_view path) const;
  [[nodiscard]] States End() const { return States{1} << parts_.size(); }
  [[nodiscard]] bool MatchesName(const Part& part, std::string_view name) const;

  std::vector<Part> parts_;
  bool nocase_ = false;
  bool takes_below_ = false;  ///< `x/`: also matches what is in x
};

}  // namespace txfs::policy

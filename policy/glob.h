#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/result.h"

namespace txfs::policy {

/// A pattern of paths relative to the workspace root, as .gitignore has them:
///
/// - without a slash inside, it is the name of something at any depth;
///   with one (a leading one counts), it begins at the root;
/// - `*` is any run of bytes within a name, `?` one byte, `[a-z]` and `[!a-z]`
///   one of a set, `\` takes the special meaning from what follows;
/// - `**` as a whole component is any number of components; at the end, one or
///   more: `x/**` is everything in x, but not x;
/// - `x/` is x and everything in it.
///
/// Paths are bytes: no normalisation, no locale. Matching takes time in
/// proportion to pattern times path, whatever the two are.
class Glob {
 public:
  /// EINVAL, with a sentence: empty, `[` without end, `\` at the end, more than
  /// 62 components. `nocase`: letters of ASCII match in either case.
  static Result<Glob> Parse(std::string_view pattern, bool nocase);

  [[nodiscard]] bool Matches(std::string_view path) const;
  /// Whether something below the directory `path` might match. "": the root.
  [[nodiscard]] bool MayMatchBelow(std::string_view path) const;
  /// Texts of which every path that matches has each in it, read as Needles
  /// does: in lower case, with a slash before and behind it. None is empty.
  [[nodiscard]] std::vector<std::string> Needles() const;

 private:
  struct Part {
    enum class Kind { kLiteral, kPattern, kAnyDepth } kind = Kind::kLiteral;
    std::string text;
  };
  /// Which parts may come next, as bits; the one behind the last is the end.
  using States = uint64_t;

  [[nodiscard]] States Skip(States states) const;
  [[nodiscard]] States Consume(States states, std::string_view name) const;
  [[nodiscard]] States Walk(std::string_view path) const;
  [[nodiscard]] States End() const { return States{1} << parts_.size(); }
  [[nodiscard]] bool MatchesName(const Part& part, std::string_view name) const;

  std::vector<Part> parts_;
  bool nocase_ = false;
  bool takes_below_ = false;  ///< `x/`: what is in it, too
};

}  // namespace txfs::policy

#include "tests/policy/reference.h"

#include <bitset>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace txfs::policy::testing {
namespace {

using Bytes = std::bitset<256>;
/// What a place in a name may have; none: `*`.
using NamePattern = std::vector<std::optional<Bytes>>;
/// What a component may be; none: `**`.
using PathPattern = std::vector<std::optional<NamePattern>>;

unsigned char Byte(char c) { return static_cast<unsigned char>(c); }

/// Whether all of `pattern`, of which some take any run, fit all `things`.
template <class Item, class Things, class Fits>
bool FitsAll(const std::vector<std::optional<Item>>& pattern,
             const Things& things, const Fits& fits) {
  const size_t rows = pattern.size() + 1;
  const size_t columns = things.size() + 1;
  std::vector<std::vector<bool>> table(rows, std::vector<bool>(columns));
  table[0][0] = true;
  for (size_t i = 1; i < rows; ++i) {
    const auto& item = pattern[i - 1];
    for (size_t j = 0; j < columns; ++j) {
      if (!item) {
        table[i][j] = table[i - 1][j] || (j > 0 && table[i][j - 1]);
      } else {
        table[i][j] =
            j > 0 && table[i - 1][j - 1] && fits(*item, things[j - 1]);
      }
    }
  }
  return table[rows - 1][columns - 1];
}

Bytes WithBothCases(Bytes bytes) {
  for (size_t lower = 'a'; lower <= 'z'; ++lower) {
    const size_t upper = lower - 'a' + 'A';
    if (bytes[lower] || bytes[upper]) bytes[lower] = bytes[upper] = true;
  }
  return bytes;
}

/// The set whose first byte is `text[at]`; moves `at` behind its `]`.
Bytes SetAt(std::string_view text, size_t& at, bool nocase) {
  const bool negated = text[at] == '!';
  if (negated) ++at;
  Bytes bytes;
  for (bool first = true; first || text[at] != ']'; first = false) {
    const size_t from = Byte(text[at]);
    size_t to = from;
    if (text[at + 1] == '-' && text[at + 2] != ']') {
      to = Byte(text[at + 2]);
      at += 2;
    }
    for (size_t c = from; c <= to; ++c) bytes[c] = true;
    ++at;
  }
  ++at;
  if (nocase) bytes = WithBothCases(bytes);
  return negated ? ~bytes : bytes;
}

NamePattern NamePatternOf(std::string_view text, bool nocase) {
  NamePattern pattern;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at++];
    if (c == '*') {
      pattern.push_back(std::nullopt);
    } else if (c == '?') {
      pattern.push_back(~Bytes());
    } else if (c == '[') {
      pattern.push_back(SetAt(text, at, nocase));
    } else {
      Bytes one;
      one[Byte(c == '\\' ? text[at++] : c)] = true;
      pattern.push_back(nocase ? WithBothCases(one) : one);
    }
  }
  return pattern;
}

std::vector<std::string_view> Split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t slash = text.find('/');
    parts.push_back(text.substr(0, slash));
    if (slash == text.npos) return parts;
    text.remove_prefix(slash + 1);
  }
}

bool FitsName(const NamePattern& pattern, std::string_view name) {
  return FitsAll(pattern, name,
                 [](const Bytes& bytes, char c) { return bytes[Byte(c)]; });
}

}  // namespace

bool ReferenceMatches(std::string_view pattern, bool nocase,
                      std::string_view path) {
  if (path.empty()) return false;
  const bool below = pattern.ends_with('/');
  if (below) pattern.remove_suffix(1);
  PathPattern parts;
  if (!pattern.contains('/')) parts.push_back(std::nullopt);
  if (pattern.starts_with('/')) pattern.remove_prefix(1);
  for (const std::string_view part : Split(pattern)) {
    const bool any = part == "**";
    parts.push_back(any ? std::nullopt
                        : std::optional(NamePatternOf(part, nocase)));
  }
  // At the end, `**` is one component at least.
  if (!parts.back()) parts.push_back(NamePatternOf("*", false));
  std::vector<std::string_view> names = Split(path);
  for (; !names.empty(); names.pop_back()) {
    if (FitsAll(parts, names, FitsName)) return true;
    if (!below) return false;
  }
  return false;
}

}  // namespace txfs::policy::testing

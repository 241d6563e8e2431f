#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace txfs::policy {

/// Only ASCII letters have case here: names are bytes.
[[nodiscard]] constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
[[nodiscard]] constexpr char ToLower(char c) {
  return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr char ToUpper(char c) {
  return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
}

[[nodiscard]] constexpr bool IsAscii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}

[[nodiscard]] inline std::string Lowered(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), ToLower);
  return lower;
}

}  // namespace txfs::policy

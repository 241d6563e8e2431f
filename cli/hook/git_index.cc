#include "cli/hook/git_index.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ranges>

#include "policy/ascii.h"

namespace txfs::cli {
namespace {

/// Whether git shows, writes and adds no other file for the entry `name` of an
/// index than one of the work tree.
bool IsPlainEntry(std::string_view name) {
  if (name.empty() || name.starts_with('/')) return false;
  return std::ranges::none_of(std::views::split(name, '/'), [](auto&& part) {
    const std::string_view word(part.begin(), part.end());
    return word.empty() || word == "." || word == ".." ||
           policy::Lowered(word) == ".git";
  });
}

}  // namespace

bool IsPlainIndex(std::string_view index) {
  constexpr size_t kHeader = 12, kFixed = 62, kMode = 24, kFlags = 60;
  constexpr uint32_t kSubmodule = 0160000, kTypes = 0170000;
  if (index.empty()) return true;
  const auto number = [&](size_t at, size_t bytes) {
    uint32_t value = 0;
    for (size_t i = at; i < at + bytes; ++i) {
      value = value << 8 | static_cast<unsigned char>(index[i]);
    }
    return value;
  };
  if (index.size() < kHeader || !index.starts_with("DIRC")) return false;
  const uint32_t version = number(4, 4);
  if (version != 2 && version != 3) return false;
  size_t at = kHeader;
  for (uint32_t left = number(8, 4); left > 0; --left) {
    if (at + kFixed + 2 > index.size()) return false;
    const bool is_extended = (number(at + kFlags, 2) & 0x4000) != 0;
    const size_t name = at + kFixed + (is_extended ? 2 : 0);
    const size_t end = index.find('\0', name);
    const bool is_submodule = (number(at + kMode, 4) & kTypes) == kSubmodule;
    if (end == std::string_view::npos || is_submodule ||
        !IsPlainEntry(index.substr(name, end - name))) {
      return false;
    }
    // NULs fill each entry up to a multiple of eight bytes.
    at += (end - at + 8) / 8 * 8;
  }
  return true;
}

}  // namespace txfs::cli

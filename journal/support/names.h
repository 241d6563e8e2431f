#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace txfs {

/// A value and its name.
template <class Value>
struct Named {
  Value value;
  std::string_view name;
};

/// The name of `value`; "unknown" if it is not in `table`.
template <class Value, size_t kCount>
[[nodiscard]] constexpr std::string_view NameIn(
    const std::array<Named<Value>, kCount>& table, Value value) {
  for (const Named<Value>& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

/// The value with the name `name`.
template <class Value, size_t kCount>
[[nodiscard]] constexpr std::optional<Value> ValueIn(
    const std::array<Named<Value>, kCount>& table, std::string_view name) {
  for (const Named<Value>& entry : table) {
    if (entry.name == name) return entry.value;
  }
  return std::nullopt;
}

}  // namespace txfs

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/output/text.h"

namespace txfs::cli {

/// For the control protocol.
using Json = nlohmann::json;
/// For output to users: keys stay in insertion order.
using Document = nlohmann::ordered_json;

/// One line of JSON. Never throws: bytes that are not UTF-8 become U+FFFD.
/// Documents contain no characters that affect a terminal.
template <class J>
std::string Dump(const J& json, int indent = -1) {
  std::string text = json.dump(indent, ' ', false, J::error_handler_t::replace);
  if constexpr (std::is_same_v<J, Document>) return EscapeUnseenInJson(text);
  return text;
}

/// Deepest nesting of arrays and objects. Deeper values could overflow the
/// stack when they are copied, printed or freed.
inline constexpr size_t kMaxNesting = 64;

/// Parses `text`; discarded if it is invalid or nested too deep.
[[nodiscard]] Json ParseBounded(std::string_view text);

/// Parses `text`; discarded if it is invalid or nested too deep, or if an
/// object has a duplicate key.
[[nodiscard]] Json ParseStrictly(std::string_view text);

/// A member of an object; zero if it is missing or of another type. Values from
/// a socket are not trusted.
[[nodiscard]] uint64_t GetUint(const Json& object, const char* key);
[[nodiscard]] int64_t GetInt(const Json& object, const char* key);
[[nodiscard]] bool GetBool(const Json& object, const char* key);
/// A string from EncodeBytes.
[[nodiscard]] std::string GetBytes(const Json& object, const char* key);
/// An array or object; an empty array if it is missing or of another type.
[[nodiscard]] const Json& GetMember(const Json& object, const char* key);

/// Bytes without loss: a string if they are UTF-8, else {"base64": "..."}.
[[nodiscard]] Json EncodeBytes(std::string_view bytes);
[[nodiscard]] std::string DecodeBytes(const Json& json);

/// Adds the member `key` as UTF-8, and if that loses bytes, also `key`_bytes in
/// base64.
void PutPath(Document& object, const std::string& key, std::string_view bytes);

}  // namespace txfs::cli

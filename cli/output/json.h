#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/output/text.h"

namespace txfs::cli {

/// Control protocol.
using Json = nlohmann::json;
/// What users get: keys stay in the order in which they were put.
using Document = nlohmann::ordered_json;

/// One line of JSON. Never throws: what is no UTF-8 becomes U+FFFD. Nothing in
/// what users get plays with a terminal.
template <class J>
std::string Dump(const J& json, int indent = -1) {
  std::string text = json.dump(indent, ' ', false, J::error_handler_t::replace);
  if constexpr (std::is_same_v<J, Document>) return EscapeUnseenInJson(text);
  return text;
}

/// How deep arrays and objects may lie in each other: what is deeper could not
/// be copied, printed or freed on a stack.
inline constexpr size_t kMaxNesting = 64;

/// The value that `text` is; discarded when it is none, or deeper than that.
[[nodiscard]] Json ParseBounded(std::string_view text);

/// The value that `text` is; discarded when it is none or too deep, or an
/// object in it has a key twice, so that nobody can tell which one counts.
[[nodiscard]] Json ParseStrictly(std::string_view text);

/// A member of an object, or the zero value when it is missing or of another
/// type: what comes from a socket may be anything.
[[nodiscard]] uint64_t GetUint(const Json& object, const char* key);
[[nodiscard]] int64_t GetInt(const Json& object, const char* key);
[[nodiscard]] bool GetBool(const Json& object, const char* key);
/// A string put with PutBytes.
[[nodiscard]] std::string GetBytes(const Json& object, const char* key);
/// An array or object; an empty array when there is none.
[[nodiscard]] const Json& GetMember(const Json& object, const char* key);

/// Bytes without loss: a string when they are UTF-8, else {"base64": "..."}.
[[nodiscard]] Json EncodeBytes(std::string_view bytes);
[[nodiscard]] std::string DecodeBytes(const Json& json);

/// For users: `key` as UTF-8, and when that loses something also
/// `key`_bytes in base64.
void PutPath(Document& object, const std::string& key, std::string_view bytes);

}  // namespace txfs::cli

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "journal/support/types.h"

namespace txfs::cli {

[[nodiscard]] bool IsUtf8(std::string_view bytes);

/// `bytes` with each byte that is not part of valid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string ToUtf8(std::string_view bytes);

[[nodiscard]] std::string EncodeBase64(std::string_view bytes);
/// Empty if `text` is not base64.
[[nodiscard]] std::string DecodeBase64(std::string_view text);

/// Escapes bytes that are not UTF-8, and characters that are not visible
/// (BeginsUnseen), as \n, \t or \ooo: safe to show on a terminal, on one line.
[[nodiscard]] std::string EscapeControls(std::string_view bytes);
/// Escapes invisible characters in strings of JSON as \uXXXX, which programs
/// read as the same.
[[nodiscard]] std::string EscapeUnseenInJson(std::string_view json);

/// A path below the workspace, for messages.
[[nodiscard]] std::string PathText(std::string_view path);

/// A name as git prints it with core.quotePath: in double quotes with C escapes
/// if it has quotes, backslashes, control or non-ASCII bytes.
[[nodiscard]] std::string QuotePath(std::string_view path);

/// A word for a shell, quoted if necessary.
[[nodiscard]] std::string QuoteShell(std::string_view word);

/// "512 B", "1.5 KiB", "2.0 GiB".
[[nodiscard]] std::string HumanSize(uint64_t bytes);

/// "1 change", "2 changes".
[[nodiscard]] std::string Count(uint64_t n, std::string_view noun);

/// "a, b, c": the results of `text` for the items.
template <class Items, class Text = std::identity>
[[nodiscard]] std::string Join(const Items& items, Text text = {}) {
  std::string joined;
  for (const auto& item : items) {
    if (!joined.empty()) joined += ", ";
    joined += text(item);
  }
  return joined;
}

/// RFC 3339 in UTC with nanoseconds: 2026-01-02T03:04:05.000000006Z.
[[nodiscard]] std::string UtcTime(Timestamp time);
/// ISO 8601 in local time with offset; `digits` (0 … 9) of the fraction of a
/// second.
[[nodiscard]] std::string LocalTime(Timestamp time, int digits);

/// EPERM, ENOENT, ...; "E123" if the number has no name; "ok" for 0.
[[nodiscard]] std::string ErrnoName(int code);

}  // namespace txfs::cli

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "journal/support/types.h"

namespace txfs::cli {

[[nodiscard]] bool IsUtf8(std::string_view bytes);

/// `bytes` with every byte that is no part of valid UTF-8 replaced by U+FFFD.
[[nodiscard]] std::string ToUtf8(std::string_view bytes);

[[nodiscard]] std::string EncodeBase64(std::string_view bytes);
/// Empty for what is no base64.
[[nodiscard]] std::string DecodeBase64(std::string_view text);

/// What is no UTF-8 or not seen for what it is (BeginsUnseen) as \n, \t or
/// \ooo: safe to show on a terminal, one line.
[[nodiscard]] std::string EscapeControls(std::string_view bytes);
/// JSON, with what is not seen in its strings as \uXXXX: the same to programs.
[[nodiscard]] std::string EscapeUnseenInJson(std::string_view json);

/// A path below the workspace, for a line of text.
[[nodiscard]] std::string PathText(std::string_view path);

/// A name as git prints it with core.quotePath: in double quotes, with C
/// escapes, when it holds quotes, backslashes, control or non-ASCII bytes.
[[nodiscard]] std::string QuotePath(std::string_view path);

/// A word for a shell, quoted only when it has to be.
[[nodiscard]] std::string QuoteShell(std::string_view word);

/// "512 B", "1.5 KiB", "2.0 GiB".
[[nodiscard]] std::string HumanSize(uint64_t bytes);

/// "1 change", "2 changes".
[[nodiscard]] std::string Count(uint64_t n, std::string_view noun);

/// "a, b, c": what `text` makes of each of the items.
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
/// ISO 8601 in local time with offset; `digits` (0 … 9) of the second's
/// fraction.
[[nodiscard]] std::string LocalTime(Timestamp time, int digits);

/// EPERM, ENOENT, ...; "E123" when the number has no name; "ok" for 0.
[[nodiscard]] std::string ErrnoName(int code);

}  // namespace txfs::cli

#include "cli/output/text.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "journal/support/unseen.h"

namespace txfs::cli {
namespace {

/// Length of the valid UTF-8 sequence at the start of `bytes`, 0 if there is
/// none. Overlong forms, surrogates and what lies past U+10FFFF are invalid.
size_t SequenceLength(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

/// Of a valid sequence.
uint32_t CodePoint(std::string_view sequence) {
  const auto lead = static_cast<uint8_t>(sequence[0]);
  if (sequence.size() == 1) return lead;
  uint32_t point = lead & (0x7FU >> sequence.size());
  for (const char byte : sequence.substr(1)) {
    point = point << 6 | (static_cast<uint8_t>(byte) & 0x3FU);
  }
  return point;
}

std::string JsonUnit(uint32_t unit) {
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "\\u%04x", unit);
  return text.data();
}

/// As one or two units of UTF-16.
std::string JsonEscape(uint32_t point) {
  if (point < 0x10000) return JsonUnit(point);
  point -= 0x10000;
  return JsonUnit(0xD800U | point >> 10) + JsonUnit(0xDC00U | (point & 0x3FFU));
}

constexpr std::string_view kBase64 =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string Octal(uint8_t byte) {
  std::array<char, 5> text{};
  std::snprintf(text.data(), text.size(), "\\%03o", unsigned{byte});
  return text.data();
}

/// The letter of C's escape of `byte`, or 0.
char EscapeLetter(uint8_t byte) {
  switch (byte) {
    case '\a':
      return 'a';
    case '\b':
      return 'b';
    case '\t':
      return 't';
    case '\n':
      return 'n';
    case '\v':
      return 'v';
    case '\f':
      return 'f';
    case '\r':
      return 'r';
    case '"':
      return '"';
    case '\\':
      return '\\';
    default:
      return 0;
  }
}

bool IsShellSafe(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::strchr("_-./+:@%,=", c) != nullptr;
}

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string ToUtf8(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    text += length == 0 ? std::string_view("\xEF\xBF\xBD")
                        : bytes.substr(0, length);
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return text;
}

std::string EncodeBase64(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view part = bytes.substr(at, 3);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group =
          group << 8 | (i < part.size() ? static_cast<uint8_t>(part[i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= part.size() ? kBase64[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  return text;
}

std::string DecodeBase64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t group = 0;
  int bits = 0;
  for (char c : text) {
    const size_t value = kBase64.find(c);
    if (value == std::string_view::npos) return {};
    group = group << 6 | static_cast<uint32_t>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes += static_cast<char>(group >> bits & 0xFF);
  }
  return bytes;
}

std::string PathText(std::string_view path) {
  return path.empty() ? "." : EscapeControls(path);
}

std::string EscapeControls(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t length = SequenceLength(bytes);
    const std::string_view one = bytes.substr(0, length == 0 ? 1 : length);
    if (length != 0 && !BeginsUnseen(one)) {
      text += one;
    } else {
      const char letter = EscapeLetter(static_cast<uint8_t>(one[0]));
      if (letter != 0) {
        text += std::string("\\") + letter;
      } else {
        for (const char byte : one) text += Octal(static_cast<uint8_t>(byte));
      }
    }
    bytes.remove_prefix(one.size());
  }
  return text;
}

std::string EscapeUnseenInJson(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  while (!json.empty()) {
    const size_t length = std::max<size_t>(SequenceLength(json), 1);
    // Others of ASCII stand between strings.
    const bool may_be = length > 1 || json[0] == 0x7F;
    if (may_be && BeginsUnseen(json.substr(0, length))) {
      text += JsonEscape(CodePoint(json.substr(0, length)));
    } else {
      text += json.substr(0, length);
    }
    json.remove_prefix(length);
  }
  return text;
}

std::string QuotePath(std::string_view path) {
  std::string quoted;
  bool odd = false;
  for (char c : path) {
    const auto byte = static_cast<uint8_t>(c);
    const char letter = EscapeLetter(byte);
    if (letter != 0) {
      quoted += std::string("\\") + letter;
    } else if (byte < 0x20 || byte >= 0x7F) {
      quoted += Octal(byte);
    } else {
      quoted += c;
      continue;
    }
    odd = true;
  }
  return odd ? '"' + quoted + '"' : quoted;
}

std::string QuoteShell(std::string_view word) {
  bool safe = !word.empty();
  for (char c : word) safe = safe && IsShellSafe(c);
  if (safe) return std::string(word);
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string HumanSize(uint64_t bytes) {
  if (bytes < 1024) return std::to_string(bytes) + " B";
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f %s", value, kUnits[unit]);
  return text.data();
}

std::string Count(uint64_t n, std::string_view noun) {
  return std::to_string(n) + " " + std::string(noun) + (n == 1 ? "" : "s");
}

std::string UtcTime(Timestamp time) {
  const time_t seconds = time.sec;
  tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return std::to_string(time.sec);
  std::array<char, 64> text{};
  const size_t used =
      std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(text.data() + used, text.size() - used, ".%09uZ", time.nsec);
  return text.data();
}

std::string LocalTime(Timestamp time, int digits) {
  const time_t seconds = time.sec;
  tm parts{};
  if (localtime_r(&seconds, &parts) == nullptr) return std::to_string(time.sec);
  std::array<char, 64> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::string result = text.data();
  if (digits > 0) {
    std::snprintf(text.data(), text.size(), "%09u", time.nsec);
    result += "." + std::string(text.data(), static_cast<size_t>(digits));
  }
  std::strftime(text.data(), text.size(), "%z", &parts);
  return result + text.data();
}

std::string ErrnoName(int code) {
  if (code == 0) return "ok";
  const char* name = strerrorname_np(code);
  return name != nullptr ? name : "E" + std::to_string(code);
}

}  // namespace txfs::cli

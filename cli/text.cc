#include "cli/text.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <ctime>

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
    const auto lead = static_cast<uint8_t>(bytes[0]);
    const size_t length = SequenceLength(bytes);
    // U+0080 … U+009F are controls, too, for terminals that take C1.
    const bool is_c1 =
        length == 2 && lead == 0xC2 && static_cast<uint8_t>(bytes[1]) < 0xA0;
    if (lead < 0x20 || lead == 0x7F || length == 0 || is_c1) {
      const char letter = EscapeLetter(lead);
      text += letter != 0 ? std::string("\\") + letter : Octal(lead);
      if (is_c1) text += Octal(static_cast<uint8_t>(bytes[1]));
    } else {
      text += bytes.substr(0, length);
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
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

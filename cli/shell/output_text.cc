#include <algorithm>
#include <array>
#include <ranges>

#include "cli/output/text.h"
#include "cli/shell/code.h"
#include "cli/shell/walker.h"

namespace txfs::cli {
namespace {

using policy::Word;
using WordList = std::vector<Word>;

std::string Unescaped(std::string_view text) {
  Letters letters;
  letters.AddEscaped(text);
  return letters.text();
}

std::string Echoed(const WordList& words) {
  bool newline = true;
  bool escapes = false;
  size_t i = 1;
  for (; i < words.size(); ++i) {
    const std::string& text = words[i].text;
    const bool is_option =
        text.size() > 1 && text[0] == '-' &&
        text.find_first_not_of("neE", 1) == std::string::npos;
    if (!is_option) break;
    if (text.contains('n')) newline = false;
    if (text.contains('e')) escapes = true;
  }
  std::string text;
  for (const size_t first = i; i < words.size(); ++i) {
    if (i > first) text += ' ';
    text += words[i].text;
  }
  return (escapes ? Unescaped(text) : text) + (newline ? "\n" : "");
}

/// Only %s, %b and %%.
std::optional<std::string> Formatted(const WordList& words) {
  size_t format = 1;
  if (words.size() > 1 && words[1].text == "--") format = 2;
  if (words.size() <= format) return std::nullopt;
  size_t next = format + 1;
  std::string text;
  const std::string pattern = words[format].text;
  do {
    const size_t before = next;
    for (size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] != '%' || i + 1 == pattern.size()) {
        text += pattern[i];
        continue;
      }
      const char kind = pattern[++i];
      if (kind == '%') {
        text += '%';
      } else if (kind == 's' || kind == 'b') {
        if (next < words.size()) {
          text += kind == 'b' ? Unescaped(words[next].text) : words[next].text;
        }
        ++next;
      } else {
        return std::nullopt;
      }
    }
    if (next == before) break;
  } while (next < words.size());
  return Unescaped(text);
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> DecodedHex(std::string_view text) {
  std::string bytes;
  int high = -1;
  for (const char c : text) {
    const int digit = HexDigit(c);
    if (digit < 0) continue;
    if (high < 0) {
      high = digit;
    } else {
      bytes += static_cast<char>(high * 16 + digit);
      high = -1;
    }
  }
  if (bytes.empty()) return std::nullopt;
  return bytes;
}

std::optional<std::string> DecodedBase64(std::string_view text) {
  std::string plain;
  std::ranges::copy_if(text, std::back_inserter(plain), [](char c) {
    return c != '\n' && c != ' ' && c != '\t' && c != '\r';
  });
  std::string bytes = DecodeBase64(plain);
  if (bytes.empty()) return std::nullopt;
  return bytes;
}

bool HasAny(const WordList& words,
            std::initializer_list<std::string_view> some) {
  return std::ranges::any_of(words, [&](const Word& word) {
    return std::ranges::find(some, word.text) != some.end();
  });
}

std::string Reversed(std::string_view text) {
  std::string result;
  for (const auto part : std::views::split(text, '\n')) {
    std::string line(part.begin(), part.end());
    std::ranges::reverse(line);
    result += line + "\n";
  }
  return result;
}

/// "a-z" as the letters from a to z.
std::string RangeOf(std::string_view text) {
  std::string set;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_range = i + 2 < text.size() && text[i + 1] == '-';
    const auto first = static_cast<unsigned char>(text[i]);
    const auto last =
        is_range ? static_cast<unsigned char>(text[i + 2]) : first;
    if (is_range && first <= last) {
      for (int c = first; c <= last; ++c) set += static_cast<char>(c);
      i += 2;
    } else {
      set += text[i];
    }
  }
  return set;
}

std::optional<std::string> Translated(const WordList& words,
                                      std::string_view input) {
  if (words.size() != 3) return std::nullopt;
  std::string text(input);
  if (words[1].text == "-d") {
    const std::string set = RangeOf(Unescaped(words[2].text));
    std::erase_if(text, [&](char c) { return set.contains(c); });
    return text;
  }
  const std::string from = RangeOf(Unescaped(words[1].text));
  const std::string to = RangeOf(Unescaped(words[2].text));
  if (from.empty() || to.empty() || from[0] == '-' || from[0] == '[') {
    return std::nullopt;
  }
  for (char& c : text) {
    const size_t at = from.find(c);
    if (at != std::string::npos) c = to[std::min(at, to.size() - 1)];
  }
  return text;
}

}  // namespace

std::optional<std::string> LiteralOutput(
    const WordList& words, const std::optional<std::string>& input,
    const std::string& directory) {
  const bool known =
      std::ranges::all_of(words, [](const Word& word) { return word.known; });
  if (words.empty() || !known) return std::nullopt;
  const std::string_view name = policy::BaseName(words[0].text);
  if (name == "echo") return Echoed(words);
  if (name == "printf") return Formatted(words);
  if (name == "pwd" && !directory.empty()) return directory + "\n";
  const bool names_program =
      (name == "which" && words.size() == 2) ||
      (name == "command" && words.size() == 3 && words[1].text == "-v") ||
      (name == "type" && words.size() == 3 && words[1].text == "-p");
  if (names_program) return words.back().text + "\n";
  if (name == "true" || name == ":") return "";
  if (name == "mktemp" && (words.size() == 1 || HasAny(words, {"-d", "-t"})) &&
      words.size() <= 2) {
    return std::string(kNewTemporary) + "\n";
  }
  if (!input) return std::nullopt;
  const bool decodes = HasAny(words, {"-d", "--decode", "-D", "-di", "-id"});
  if (name == "base64" && decodes) return DecodedBase64(*input);
  if (name == "openssl" && HasAny(words, {"base64", "-base64", "-a"}) &&
      decodes) {
    return DecodedBase64(*input);
  }
  if (name == "xxd" && HasAny(words, {"-r", "-rp", "-pr"})) {
    return DecodedHex(*input);
  }
  if (name == "rev") return Reversed(*input);
  if (name == "tr") return Translated(words, *input);
  const bool has_operand =
      std::ranges::any_of(words.begin() + 1, words.end(), [](const Word& word) {
        return !word.text.starts_with('-') || word.text == "-";
      });
  if (name == "tee" || (name == "cat" && !has_operand)) return input;
  return std::nullopt;
}

}  // namespace txfs::cli

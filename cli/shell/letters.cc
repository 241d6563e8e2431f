#include "cli/shell/letters.h"

#include <algorithm>
#include <cstdint>
#include <utility>

namespace txfs::cli {
namespace {

constexpr size_t kMaxBraceDepth = 8;

int DigitOf(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

/// Reads up to `most` digits of `base` at `at`, and moves it behind them.
uint32_t ReadDigits(std::string_view text, size_t& at, size_t most, int base) {
  uint32_t value = 0;
  for (size_t i = 0; i < most && at < text.size(); ++i, ++at) {
    const int digit = DigitOf(text[at]);
    if (digit >= base) break;
    value = value * static_cast<uint32_t>(base) + static_cast<uint32_t>(digit);
  }
  return value;
}

void AppendUtf8(std::string& text, uint32_t code) {
  const auto add = [&](uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xC0 | code >> 6);
    add(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    add(0xE0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  } else {
    add(0xF0 | (code >> 18 & 0x07));
    add(0x80 | (code >> 12 & 0x3F));
    add(0x80 | (code >> 6 & 0x3F));
    add(0x80 | (code & 0x3F));
  }
}

char SimpleEscape(char c) {
  constexpr std::string_view kNames = "abefnrtvE";
  constexpr std::string_view kValues = "\a\b\033\f\n\r\t\v\033";
  const size_t at = kNames.find(c);
  return at == std::string_view::npos ? c : kValues[at];
}

bool IsBlankByte(char c) { return c == ' ' || c == '\t' || c == '\n'; }

}  // namespace

void Letters::Add(std::string_view text, Kind kind) {
  text_ += text;
  kinds_.append(text.size(), static_cast<char>(kind));
  if (kind == Kind::kQuoted) quoted_ = true;
}

void Letters::Add(const Letters& other) {
  text_ += other.text_;
  kinds_ += other.kinds_;
  quoted_ = quoted_ || other.quoted_;
}

void Letters::AddPlain(std::string_view raw) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      Add(raw.substr(i, 1), Kind::kPlain);
    } else if (raw[++i] != '\n') {
      Add(raw.substr(i, 1), Kind::kQuoted);
    }
  }
}

void Letters::AddInQuotes(std::string_view raw) {
  for (size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == '\\' && i + 1 < raw.size()) {
      const char next = raw[i + 1];
      if (next == '\n') {
        ++i;
        continue;
      }
      if (std::string_view("$`\"\\").contains(next)) ++i;
    }
    Add(raw.substr(i, 1), Kind::kQuoted);
  }
}

void Letters::AddEscaped(std::string_view raw) {
  std::string text;
  for (size_t i = 0; i < raw.size();) {
    if (raw[i] != '\\' || i + 1 == raw.size()) {
      text += raw[i++];
      continue;
    }
    const char kind = raw[i + 1];
    i += 2;
    if (kind == 'x') {
      text += static_cast<char>(ReadDigits(raw, i, 2, 16));
    } else if (kind == 'u' || kind == 'U') {
      AppendUtf8(text, ReadDigits(raw, i, kind == 'u' ? 4 : 8, 16));
    } else if (kind >= '0' && kind <= '7') {
      --i;
      text += static_cast<char>(ReadDigits(raw, i, 3, 8));
    } else {
      text += SimpleEscape(kind);
    }
  }
  Add(text, Kind::kQuoted);
  MarkQuoted();
}

bool Letters::known() const {
  return !kinds_.contains(static_cast<char>(Kind::kUnknown));
}

Letters Letters::Slice(size_t begin, size_t end) const {
  Letters part;
  part.text_ = text_.substr(begin, end - begin);
  part.kinds_ = kinds_.substr(begin, end - begin);
  part.quoted_ = quoted_;
  return part;
}

size_t Letters::FindBraces(size_t begin, std::vector<size_t>& commas) const {
  size_t depth = 0;
  for (size_t i = begin; i < text_.size(); ++i) {
    if (IsAt(i, '{', Kind::kPlain)) ++depth;
    if (depth == 1 && IsAt(i, ',', Kind::kPlain)) commas.push_back(i);
    if (IsAt(i, '}', Kind::kPlain) && --depth == 0) {
      return commas.empty() ? 0 : i;
    }
  }
  return 0;
}

std::vector<Letters> Letters::ExpandBraces(size_t most, size_t depth) const {
  for (size_t i = 0; depth < kMaxBraceDepth && i < text_.size(); ++i) {
    if (!IsAt(i, '{', Kind::kPlain)) continue;
    std::vector<size_t> commas;
    const size_t end = FindBraces(i, commas);
    if (end == 0) continue;
    commas.push_back(end);
    std::vector<Letters> words;
    size_t begin = i + 1;
    for (const size_t comma : commas) {
      Letters word = Slice(0, i);
      word.Add(Slice(begin, comma));
      word.Add(Slice(end + 1, text_.size()));
      for (Letters& one : word.ExpandBraces(most, depth + 1)) {
        if (words.size() < most) words.push_back(std::move(one));
      }
      begin = comma + 1;
    }
    return words;
  }
  return {*this};
}

Letters Letters::WithHome(std::string_view home) const {
  if (text_.empty() || !IsAt(0, '~', Kind::kPlain)) return *this;
  const size_t end = std::min(text_.find('/'), text_.size());
  const std::string_view user = std::string_view(text_).substr(1, end - 1);
  Letters word;
  if (user.empty()) {
    word.Add(home, Kind::kQuoted);
  } else if (user == "root") {
    word.Add("/root", Kind::kQuoted);
  } else if (user == "+" || user == "-" || !known()) {
    word.Add(text_.substr(0, end), Kind::kUnknown);
  } else {
    word.Add("/home/" + std::string(user), Kind::kQuoted);
  }
  word.Add(Slice(end, text_.size()));
  word.quoted_ = quoted_;
  return word;
}

policy::Word Letters::AsWord(std::string_view home) const {
  const Letters whole = WithHome(home);
  policy::Word word{.text = whole.text_};
  const size_t unknown = whole.kinds_.find(static_cast<char>(Kind::kUnknown));
  word.known = unknown == std::string::npos;
  word.known_prefix = word.known ? word.text.size() : unknown;
  word.quoted = true;
  for (size_t i = 0; i < word.text.size(); ++i) {
    const bool is_pattern =
        std::string_view("*?[").contains(word.text[i]) &&
        (whole.kinds_[i] == static_cast<char>(Kind::kPlain) ||
         whole.kinds_[i] == static_cast<char>(Kind::kExpanded));
    if (is_pattern) word.quoted = false;
  }
  return word;
}

std::vector<policy::Word> Letters::Split(std::string_view home,
                                         size_t most) const {
  std::vector<policy::Word> words;
  for (const Letters& one : ExpandBraces(most, 0)) {
    const Letters whole = one.WithHome(home);
    size_t begin = 0;
    bool any = false;
    const auto end_word = [&](size_t end) {
      const bool empty = begin == end;
      if ((!empty || (!any && whole.quoted_)) && words.size() < most) {
        words.push_back(whole.Slice(begin, end).AsWord(""));
        any = true;
      }
      begin = end + 1;
    };
    for (size_t i = 0; i < whole.text_.size(); ++i) {
      const bool splits =
          whole.kinds_[i] == static_cast<char>(Kind::kSplit) ||
          (IsBlankByte(whole.text_[i]) &&
           whole.kinds_[i] == static_cast<char>(Kind::kExpanded));
      if (splits) end_word(i);
    }
    end_word(whole.text_.size());
  }
  return words;
}

}  // namespace txfs::cli

#include "cli/shell/code_tokens.h"

#include <algorithm>
#include <utility>

namespace txfs::cli {
namespace {

/// Reads a literal that begins at `at` with `quote`, and moves `at` behind it.
std::string ReadLiteral(std::string_view code, size_t& at,
                        std::string_view quote) {
  std::string text;
  at += quote.size();
  while (at < code.size() && !code.substr(at).starts_with(quote)) {
    if (code[at] == '\\' && at + 1 < code.size()) {
      ++at;
      text += code[at] == 'n' ? '\n' : code[at] == 't' ? '\t' : code[at];
    } else {
      text += code[at];
    }
    ++at;
  }
  at = std::min(at + quote.size(), code.size());
  return text;
}

char Closing(char open) {
  switch (open) {
    case '(':
      return ')';
    case '{':
      return '}';
    case '[':
      return ']';
    case '<':
      return '>';
    default:
      return open;
  }
}

/// Ruby's %x(...), and Perl's qx(...) and q(...): the length of what is before
/// the opening delimiter; 0: none of these.
size_t BeginOfPercent(std::string_view rest, Language language) {
  if (language == Language::kRuby && rest.starts_with("%x")) return 2;
  if (language == Language::kPerl && rest.starts_with("qx")) return 2;
  return 0;
}

/// The length of a comment at the begin of `rest`; 0: there is none.
size_t LengthOfComment(std::string_view rest, Language language, char before) {
  const bool slashes =
      language == Language::kNode || language == Language::kPhp;
  if (slashes && rest.starts_with("/*")) {
    return std::min(rest.find("*/", 2), rest.size() - 2) + 2;
  }
  const bool begins =
      (slashes && rest.starts_with("//") && before != ':') ||
      (language == Language::kLua && rest.starts_with("--")) ||
      (language != Language::kNode && language != Language::kLua &&
       rest[0] == '#' && before != '$' && before != '{');
  return begins ? std::min(rest.find('\n'), rest.size()) : 0;
}

/// The words of Perl's qw(...), with commas between them; their length with
/// delimiters; 0: it is none.
size_t AddQuotedWords(std::string_view rest, std::vector<Token>& tokens) {
  if (!rest.starts_with("qw") || rest.size() < 4) return 0;
  size_t at = rest.find_first_not_of(' ', 2);
  if (at == std::string_view::npos || IsNameByte(rest[at])) return 0;
  const size_t end = rest.find(Closing(rest[at]), at + 1);
  if (end == std::string_view::npos) return 0;
  const std::string_view inside = rest.substr(at + 1, end - at - 1);
  size_t begin = 0;
  while ((begin = inside.find_first_not_of(" \t\n", begin)) !=
         std::string_view::npos) {
    const size_t stop =
        std::min(inside.find_first_of(" \t\n", begin), inside.size());
    tokens.push_back({Token::Kind::kString,
                      std::string(inside.substr(begin, stop - begin))});
    tokens.push_back({Token::Kind::kOther, ","});
    begin = stop;
  }
  return end + 1;
}

}  // namespace

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

std::vector<Token> Tokens(Language language, std::string_view code) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < code.size();) {
    const char c = code[at];
    const std::string_view rest = code.substr(at);
    const size_t comment =
        LengthOfComment(rest, language, at == 0 ? '\n' : code[at - 1]);
    if (comment != 0) {
      at += comment;
      continue;
    }
    // Perl's <~/x/*>: glob("~/x/*").
    if (language == Language::kPerl && rest.size() > 2 && c == '<' &&
        (rest[1] == '/' || rest[1] == '~')) {
      const size_t end = rest.find_first_of("> \n", 1);
      if (end != std::string_view::npos && rest[end] == '>') {
        tokens.push_back({Token::Kind::kName, "glob"});
        tokens.push_back(
            {Token::Kind::kString, std::string(rest.substr(1, end - 1))});
        at += end + 1;
        continue;
      }
    }
    if (language == Language::kPerl && (at == 0 || !IsNameByte(code[at - 1]))) {
      if (const size_t size = AddQuotedWords(rest, tokens); size != 0) {
        at += size;
        continue;
      }
    }
    const size_t percent = BeginOfPercent(rest, language);
    if (percent != 0 && rest.size() > percent && !IsNameByte(rest[percent]) &&
        rest[percent] != ' ') {
      const std::string closing(1, Closing(rest[percent]));
      at += percent;
      tokens.push_back(
          {Token::Kind::kBackticks, ReadLiteral(code, at, closing)});
      continue;
    }
    constexpr std::string_view kHome = "\"$ENV{HOME}/";
    if (language == Language::kPerl && rest.starts_with(kHome)) {
      at += kHome.size() - 2;
      tokens.push_back(
          {Token::Kind::kString, "~/" + ReadLiteral(code, at, "\"")});
    } else if (rest.starts_with("\"\"\"") || rest.starts_with("'''")) {
      tokens.push_back(
          {Token::Kind::kString, ReadLiteral(code, at, rest.substr(0, 3))});
    } else if (c == '"' || c == '\'') {
      tokens.push_back(
          {Token::Kind::kString, ReadLiteral(code, at, rest.substr(0, 1))});
    } else if (c == '`') {
      const bool runs = language == Language::kRuby ||
                        language == Language::kPerl ||
                        language == Language::kPhp ||
                        // $`COMMAND` of Bun and zx
                        (at > 0 && code[at - 1] == '$' &&
                         (at < 2 || !IsNameByte(code[at - 2])));
      tokens.push_back({runs ? Token::Kind::kBackticks : Token::Kind::kString,
                        ReadLiteral(code, at, "`")});
    } else if (IsNameByte(c)) {
      size_t end = at;
      while (end < code.size() && IsNameByte(code[end])) ++end;
      tokens.push_back(
          {Token::Kind::kName, std::string(code.substr(at, end - at))});
      at = end;
    } else {
      if (c != ' ' && c != '\t' && c != '\n') {
        tokens.push_back({Token::Kind::kOther, std::string(1, c)});
      }
      ++at;
    }
  }
  return tokens;
}

}  // namespace txfs::cli

#include "cli/plain/plain_syntax.h"

#include <algorithm>
#include <string>

#include "cli/plain/plain_use.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxDepth = 100;

std::string TypeIn(const Json& node) { return GetBytes(node, "Type"); }

/// Whether the parts of a text in which a dollar counts are literal in all
/// shells: "$=x" is in bash only.
bool AreLiteral(const Json& parts) {
  return std::ranges::all_of(parts, [](const Json& part) {
    return TypeIn(part) == "Lit" && !GetBytes(part, "Value").contains('$');
  });
}

/// Whether `word` is one literal. Patterns are, but not together with quotes:
/// which of their characters are quoted is known only here.
bool IsLiteral(const Json& word) {
  std::string plain;
  bool quoted = false;
  for (const Json& part : GetMember(word, "Parts")) {
    const std::string type = TypeIn(part);
    if (type == "Lit") {
      plain += GetBytes(part, "Value");
      continue;
    }
    quoted = true;
    if (GetBool(part, "Dollar")) return false;
    if (type == "SglQuoted") continue;
    if (type != "DblQuoted" || !AreLiteral(GetMember(part, "Parts"))) {
      return false;
    }
  }
  const bool has_pattern = plain.find_first_of("*?[") != std::string::npos;
  if (has_pattern && (quoted || plain.contains('\\'))) return false;
  const bool has_braces =
      plain.contains('{') && (plain.contains(',') || plain.contains(".."));
  // ~+, ~user, =program of zsh; after a "=", some shells expand a tilde.
  const bool has_tilde =
      (plain.starts_with('~') && plain.size() > 1 && plain[1] != '/') ||
      (plain == "~" && quoted) || plain.contains("=~") || plain.contains(":~");
  // Patterns of some shells.
  const bool is_other =
      plain.starts_with('=') || plain.starts_with('^') || plain.contains('$');
  return !has_braces && !has_tilde && !is_other;
}

/// Whether all shells end a here-document at the same line, and take it as it
/// is.
bool IsPlainDocument(const Json& redirect, std::string_view source) {
  const Json& document = GetMember(redirect, "Hdoc");
  if (document.empty()) return true;
  // The parser leaves out a backslash at the end of a line.
  const uint64_t begin = GetUint(GetMember(document, "Pos"), "Offset");
  const uint64_t end = GetUint(GetMember(document, "End"), "Offset");
  if (begin > end || end > source.size()) return false;
  const bool has_special =
      source.substr(begin, end - begin).find_first_of("\\$`") !=
      std::string_view::npos;
  const auto& delimiter = GetMember(GetMember(redirect, "Word"), "Parts");
  const bool is_quoted = std::ranges::all_of(delimiter, [](const Json& part) {
    return TypeIn(part) == "SglQuoted" || TypeIn(part) == "DblQuoted";
  });
  if (has_special && !is_quoted) return false;
  return std::ranges::all_of(
      GetMember(document, "Parts"),
      [](const Json& part) { return TypeIn(part) == "Lit"; });
}

bool IsPlainRedirection(const Json& redirect, std::string_view source) {
  // {NAME}> sets a variable.
  const std::string number = GetBytes(GetMember(redirect, "N"), "Value");
  if (number.find_first_not_of("0123456789&") != std::string::npos) {
    return false;
  }
  if (!IsPlainDocument(redirect, source)) return false;
  // Devices such as /dev/tcp are no files.
  const Json& word = GetMember(redirect, "Word");
  std::string text;
  for (const Json& part : GetMember(word, "Parts")) {
    text += GetBytes(part, "Value");
    for (const Json& inner : GetMember(part, "Parts")) {
      text += GetBytes(inner, "Value");
    }
  }
  const bool is_device = text.starts_with("/dev/") && text != "/dev/null" &&
                         text != "/dev/stderr" && text != "/dev/stdout";
  // "<1-9>" is a pattern of zsh, ">! x" a redirection to x.
  const bool is_number =
      text.find_first_not_of("0123456789-") == std::string::npos &&
      text.contains('-');
  return IsLiteral(word) && !is_device && !is_number &&
         !text.starts_with('!') &&
         text.find_first_of("*?[\\") == std::string::npos;
}

bool IsPlainCall(const Json& call) {
  if (GetMember(call, "Args").empty()) return false;
  for (const Json& assign : GetMember(call, "Assigns")) {
    const bool is_simple = !assign.contains("Index") &&
                           !assign.contains("Array") &&
                           !GetBool(assign, "Append");
    const Json& value = GetMember(assign, "Value");
    if (!is_simple || !IsLiteral(value)) return false;
    std::string text = GetBytes(GetMember(assign, "Name"), "Value") + "=";
    for (const Json& part : GetMember(value, "Parts")) {
      text += GetBytes(part, "Value");
    }
    if (!IsHarmlessVariable(text)) return false;
  }
  return std::ranges::all_of(GetMember(call, "Args"), IsLiteral);
}

/// The first word of a simple command, if it is one literal.
std::string ProgramOf(const Json& statement) {
  const Json& call = GetMember(statement, "Cmd");
  const Json& words = GetMember(call, "Args");
  if (TypeIn(call) != "CallExpr" || words.empty()) return "";
  std::string text;
  for (const Json& part : GetMember(words[0], "Parts")) {
    text += GetBytes(part, "Value");
    for (const Json& inner : GetMember(part, "Parts")) {
      text += GetBytes(inner, "Value");
    }
  }
  return text;
}

/// Where the first command of the text is, if all others run only after it:
/// the left end of a list of "&&".
const Json* FirstOfAll(const Json& tree, std::string_view source) {
  const Json& statements = GetMember(tree, "Stmts");
  if (statements.size() != 1) return nullptr;
  const Json* first = &statements[0];
  while (TypeIn(GetMember(*first, "Cmd")) == "BinaryCmd") {
    const Json& list = GetMember(*first, "Cmd");
    const uint64_t at = GetUint(GetMember(list, "OpPos"), "Offset");
    if (at > source.size() || !source.substr(at).starts_with("&&")) {
      return nullptr;
    }
    first = &GetMember(list, "X");
  }
  return first;
}

/// Whether a change of the directory is for all that follows, and only for
/// that: `statement` is `first`, and has no redirections.
bool IsPlainChange(const Json& statement, const Json* first) {
  return ProgramOf(statement) != "cd" ||
         (&statement == first && !GetBool(statement, "Negated") &&
          GetMember(statement, "Redirs").empty());
}

/// What a whole text is to each of its parts.
struct PlainText {
  std::string_view source;
  const Json* first;  ///< FirstOfAll
};

bool IsPlainStatement(const Json& statement, const PlainText& text,
                      size_t depth) {
  if (depth > kMaxDepth || GetBool(statement, "Background") ||
      GetBool(statement, "Coprocess")) {
    return false;
  }
  for (const Json& redirect : GetMember(statement, "Redirs")) {
    if (!IsPlainRedirection(redirect, text.source)) return false;
  }
  const Json& command = GetMember(statement, "Cmd");
  const std::string type = TypeIn(command);
  if (type == "CallExpr") {
    return IsPlainChange(statement, text.first) && IsPlainCall(command);
  }
  return type == "BinaryCmd" &&
         IsPlainStatement(GetMember(command, "X"), text, depth + 1) &&
         IsPlainStatement(GetMember(command, "Y"), text, depth + 1);
}

}  // namespace

bool IsPlainSyntax(const Json& tree, std::string_view source) {
  // A byte that ends lines in some shells only.
  if (source.contains('\r')) return false;
  const PlainText text{source, FirstOfAll(tree, source)};
  return std::ranges::all_of(GetMember(tree, "Stmts"),
                             [&](const Json& statement) {
                               return IsPlainStatement(statement, text, 0);
                             });
}

}  // namespace txfs::cli

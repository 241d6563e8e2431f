#include "cli/plain/plain_syntax.h"

#include <algorithm>
#include <string>

#include "cli/plain/plain_use.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxDepth = 100;

std::string TypeIn(const Json& node) { return GetBytes(node, "Type"); }

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
    const Json& inner = GetMember(part, "Parts");
    const bool is_text = std::ranges::all_of(
        inner, [](const Json& one) { return TypeIn(one) == "Lit"; });
    if (type != "DblQuoted" || !is_text) return false;
  }
  const bool has_pattern = plain.find_first_of("*?[") != std::string::npos;
  if (has_pattern && (quoted || plain.contains('\\'))) return false;
  const bool has_braces =
      plain.contains('{') && (plain.contains(',') || plain.contains(".."));
  // ~+, ~user, =program of zsh; after a "=", some shells expand a tilde.
  const bool has_tilde =
      (plain.starts_with('~') && plain.size() > 1 && plain[1] != '/') ||
      (plain == "~" && quoted) || plain.contains("=~") || plain.contains(":~");
  return !has_braces && !has_tilde && !plain.starts_with('=');
}

bool IsPlainRedirection(const Json& redirect) {
  // {NAME}> sets a variable.
  const std::string number = GetBytes(GetMember(redirect, "N"), "Value");
  if (number.find_first_not_of("0123456789&") != std::string::npos) {
    return false;
  }
  for (const Json& part : GetMember(GetMember(redirect, "Hdoc"), "Parts")) {
    if (TypeIn(part) != "Lit") return false;
  }
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
  return IsLiteral(word) && !is_device &&
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

bool IsPlainStatement(const Json& statement, size_t depth) {
  if (depth > kMaxDepth || GetBool(statement, "Background") ||
      GetBool(statement, "Coprocess")) {
    return false;
  }
  if (!std::ranges::all_of(GetMember(statement, "Redirs"),
                           IsPlainRedirection)) {
    return false;
  }
  const Json& command = GetMember(statement, "Cmd");
  const std::string type = TypeIn(command);
  if (type == "CallExpr") return IsPlainCall(command);
  if (type == "TimeClause") {
    return IsPlainStatement(GetMember(command, "Stmt"), depth + 1);
  }
  return type == "BinaryCmd" &&
         IsPlainStatement(GetMember(command, "X"), depth + 1) &&
         IsPlainStatement(GetMember(command, "Y"), depth + 1);
}

}  // namespace

bool IsPlainSyntax(const Json& tree, std::string_view source) {
  // A byte that ends lines in some shells only.
  if (source.contains('\r')) return false;
  return std::ranges::all_of(
      GetMember(tree, "Stmts"),
      [](const Json& statement) { return IsPlainStatement(statement, 0); });
}

}  // namespace txfs::cli

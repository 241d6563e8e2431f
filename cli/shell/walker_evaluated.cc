#include <algorithm>
#include <array>
#include <vector>

#include "cli/shell/option_words.h"
#include "cli/shell/walker.h"

namespace txfs::cli {
namespace {

using policy::KnownWord;
using policy::Word;

constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

template <size_t kSize>
bool IsOneOf(const std::array<std::string_view, kSize>& names,
             std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The length of what is in the parentheses that are open at the begin of
/// `text`.
size_t LengthInside(std::string_view text) {
  size_t open = 1;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++open;
    if (text[i] == ')' && --open == 0) return i;
  }
  return text.size();
}

}  // namespace

bool IsArithmetic(std::string_view type) {
  return IsOneOf(
      std::to_array<std::string_view>(
          {"ArithmExp", "ArithmCmd", "LetClause", "TestClause", "CStyleLoop"}),
      type);
}

void Walker::SearchRest(const Json& tree) {
  std::vector<const Json*> left{&tree};
  while (!left.empty()) {
    const Json& node = *left.back();
    left.pop_back();
    const std::string type = node.is_object() ? GetBytes(node, "Type") : "";
    if (type == "FuncDecl") continue;
    const bool is_substitution = type == "CmdSubst" || type == "ProcSubst";
    if (is_substitution && !searched_.contains(&node)) Search(node, {}, 0);
    for (const Json& child : node) {
      if (child.is_structured()) left.push_back(&child);
    }
  }
}

void Walker::Evaluate(std::string_view text) {
  for (;;) {
    const size_t at = std::min(text.find("$("), text.find('`'));
    if (at == std::string_view::npos || IsTooMuch()) return;
    const bool is_quote = text[at] == '`';
    text.remove_prefix(at + (is_quote ? 1 : 2));
    const size_t size =
        is_quote ? std::min(text.find('`'), text.size()) : LengthInside(text);
    const std::string inside(text.substr(0, size));
    text.remove_prefix(std::min(size + 1, text.size()));
    RunText(KnownWord(inside), {}, {}, "evaluation");
  }
}

void Walker::EvaluateValue(const std::string& name) {
  const auto values = ValueOf(name);
  if (!values) return;
  for (const Word& value : *values) Evaluate(value.text);
}

void Walker::EvaluateArithmetic(const Json& node) {
  std::vector<const Json*> left{&node};
  while (!left.empty()) {
    const Json& one = *left.back();
    left.pop_back();
    const std::string type = one.is_object() ? GetBytes(one, "Type") : "";
    // What these print is not known.
    if (type == "CmdSubst" || type == "ProcSubst") continue;
    std::string value = one.is_object() ? GetBytes(one, "Value") : "";
    if (type == "ParamExp") value = GetBytes(GetMember(one, "Param"), "Value");
    Evaluate(value);
    while (!value.empty()) {
      const size_t begin =
          std::min(value.find_first_of(kNameLetters), value.size());
      value.erase(0, begin);
      const size_t end =
          std::min(value.find_first_not_of(kNameLetters), value.size());
      if (end > 0) EvaluateValue(value.substr(0, end));
      value.erase(0, end);
    }
    for (const Json& child : one) {
      if (child.is_structured()) left.push_back(&child);
    }
  }
}

void Walker::EvaluateArguments(std::string_view name, const Words& arguments) {
  constexpr auto kNames = std::to_array<std::string_view>(
      {"read", "mapfile", "readarray", "unset", "getopts", "let", "declare",
       "local", "typeset", "export", "readonly"});
  const bool is_test = name == "test" || name == "[";
  for (size_t i = 0; i < arguments.size(); ++i) {
    const bool is_name =
        IsOneOf(kNames, name) || (i > 0 && arguments[i - 1].text == "-v" &&
                                  (is_test || name == "printf"));
    if (is_name) Evaluate(arguments[i].text);
  }
  if (name != "mapfile" && name != "readarray") return;
  for (const Word& command : ValuesOf(arguments, 'C', "")) {
    RunText(command, {}, {}, name);
  }
}

void Walker::RunVariable(std::string_view name, const Word& value) {
  constexpr auto kPrompts =
      std::to_array<std::string_view>({"PS0", "PS1", "PS2", "PS3", "PS4"});
  constexpr auto kCommands =
      std::to_array<std::string_view>({"PROMPT_COMMAND",
                                       "GIT_EDITOR",
                                       "GIT_SEQUENCE_EDITOR",
                                       "GIT_PAGER",
                                       "GIT_SSH_COMMAND",
                                       "GIT_SSH",
                                       "GIT_ASKPASS",
                                       "GIT_EXTERNAL_DIFF",
                                       "EDITOR",
                                       "VISUAL",
                                       "PAGER",
                                       "MANPAGER",
                                       "SSH_ASKPASS",
                                       "core.editor",
                                       "core.pager",
                                       "core.sshCommand",
                                       "core.fsmonitor",
                                       "sequence.editor",
                                       "diff.external",
                                       "core.askPass"});
  if (IsOneOf(kPrompts, name)) Evaluate(value.text);
  // One word alone is the name of a program.
  const bool is_command =
      IsOneOf(kCommands, name) &&
      value.text.find_first_of(" ;|&\n") != std::string::npos;
  if (is_command) RunText(value, {}, {}, name);
}

}  // namespace txfs::cli

#include "cli/shell/tcl.h"

#include <algorithm>
#include <array>
#include <string>

#include "cli/shell/code_tokens.h"

namespace txfs::cli {
namespace {

using policy::KnownWord;
using Kind = CodeEffect::Kind;

/// The words at the begin of `rest`, a command of Tcl, as shell text: in braces
/// they are literal, and what stands for a command's result is not known.
std::string ShellTextOfTcl(std::string_view rest) {
  std::string text;
  int braces = 0;
  int brackets = 0;
  bool in_quotes = false;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '\\' && i + 1 < rest.size()) {
      const char next = rest[++i];
      if (next == '\n') text += ' ';
      if (next != '\n' && brackets == 0) text += std::string{'\\', next};
      continue;
    }
    if (brackets > 0) {
      brackets += (c == '[' ? 1 : 0) - (c == ']' ? 1 : 0);
      continue;
    }
    if (!in_quotes && (c == '{' || c == '}')) {
      const bool opens = c == '{';
      if (!opens && braces == 0) break;
      braces += opens ? 1 : -1;
      const bool is_edge = braces == (opens ? 1 : 0);
      text += is_edge ? '\'' : c;
      continue;
    }
    if (braces > 0) {
      text += c == '\'' ? "'\\''" : std::string(1, c);
      continue;
    }
    if (!in_quotes && (c == '\n' || c == ';' || c == ']')) break;
    if (c == '"') in_quotes = !in_quotes;
    if (c == '[') ++brackets;
    text += c == '[' ? "$_" : c == '`' ? "\\`" : std::string(1, c);
  }
  return in_quotes ? text.substr(0, text.rfind('"')) : text;
}

/// Removes options from the begin of `text`. Whether one was -force.
bool DropOptions(std::string& text) {
  bool forces = false;
  for (;;) {
    text.erase(0, std::min(text.find_first_not_of(" \t"), text.size()));
    if (!text.starts_with('-')) return forces;
    forces = forces || text.starts_with("-force");
    text.erase(0, text.find_first_of(" \t"));
  }
}

}  // namespace

std::vector<CodeEffect> EffectsOfTcl(std::string_view code) {
  struct Known {
    std::string_view words;
    std::string_view shell;  ///< what the rest is behind in shell text
  };
  constexpr auto kKnown = std::to_array<Known>({{"exec ", ""},
                                                {"spawn ", ""},
                                                {"system ", "eval "},
                                                {"file delete ", "rm -f "},
                                                {"file rename ", "mv "},
                                                {"file copy ", "cp -r "},
                                                {"open ", ""}});
  std::vector<CodeEffect> effects;
  for (size_t at = 0; at < code.size() && effects.size() < kMaxCodeEffects;
       ++at) {
    if (at > 0 && IsNameByte(code[at - 1])) continue;
    for (const Known& known : kKnown) {
      if (!code.substr(at).starts_with(known.words)) continue;
      std::string text = ShellTextOfTcl(code.substr(at + known.words.size()));
      const bool forces = DropOptions(text);
      if (known.words == "open ") {
        // A pipe: "|COMMAND".
        if (text.size() < 3 || text[1] != '|') break;
        text = text.substr(2, text.find(text[0], 1) - 2);
      }
      if (forces && known.shell == "rm -f ") text = "-r " + text;
      if (text.empty()) break;
      effects.push_back(
          {Kind::kText, {KnownWord(std::string(known.shell) + text)}});
    }
  }
  return effects;
}

}  // namespace txfs::cli

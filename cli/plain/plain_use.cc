#include "cli/plain/plain_use.h"

#include <algorithm>
#include <array>
#include <ranges>
#include <string>

#include "cli/plain/plain_programs.h"

namespace txfs::cli {
namespace {

using policy::Word;
using How = PlainUse::How;
using Operands = std::vector<Word>;

/// What the options of a command leave.
struct Parsed {
  Operands operands;
  /// Values of options that are programs, or files.
  std::vector<std::pair<std::string, Word>> values;
};

/// Whether `list`, names between blanks, has `name`.
bool Has(std::string_view list, std::string_view name) {
  return (" " + std::string(list) + " ")
      .contains(" " + std::string(name) + " ");
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Reads a cluster of letters, whose last may take the next word. False: one of
/// them is not known.
bool ReadLetters(const PlainOptions& known, const Word& word, bool& takes_next,
                 Parsed& parsed) {
  const std::string_view text = word.text;
  for (size_t i = 1; i < text.size(); ++i) {
    if (known.attached.contains(text[i])) return true;
    if (known.values.contains(text[i])) {
      takes_next = i + 1 == text.size();
      if (!takes_next) {
        parsed.values.emplace_back(
            text.substr(i, 1),
            policy::KnownWord(std::string(text.substr(i + 1))));
      }
      return true;
    }
    const bool is_number = IsDigit(text[i]) && known.flags.contains('#');
    if (!is_number && !known.flags.contains(text[i])) return false;
  }
  return true;
}

/// None: an option is not known. `is_wrapper`: the first operand ends them.
std::optional<Parsed> ParseOptions(const PlainOptions& known,
                                   const Operands& words, bool is_wrapper) {
  Parsed parsed;
  bool ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const Word& word = words[i];
    const std::string& text = word.text;
    if (!word.known) return std::nullopt;
    const bool is_option = !ended && text.size() > 1 && text[0] == '-';
    if (!is_option) {
      // What it expands to may be an option.
      const bool may_be_option =
          !ended && IsPattern(word) && text.find_first_of("*?[") == 0;
      if (may_be_option && !known.any) return std::nullopt;
      parsed.operands.push_back(word);
      ended = ended || is_wrapper;
      continue;
    }
    if (IsPattern(word)) return std::nullopt;
    if (text == "--") {
      ended = true;
      continue;
    }
    if (known.any) {
      const size_t equals = text.find('=');
      if (equals != std::string::npos) {
        parsed.operands.push_back(policy::KnownWord(text.substr(equals + 1)));
        parsed.operands.back().quoted = true;
      }
      continue;
    }
    bool takes_next = false;
    std::string name = text.substr(text.size() - 1);
    if (text.starts_with("--")) {
      const size_t equals = text.find('=');
      name = text.substr(2, equals == std::string::npos ? equals : equals - 2);
      const bool takes = Has(known.long_values, name);
      if (!takes && !Has(known.long_flags, name)) return std::nullopt;
      takes_next = takes && equals == std::string::npos;
      if (takes && !takes_next) {
        parsed.values.emplace_back(name,
                                   policy::KnownWord(text.substr(equals + 1)));
      }
    } else if (!ReadLetters(known, word, takes_next, parsed)) {
      return std::nullopt;
    }
    if (!takes_next) continue;
    ++i;
    if (i == words.size() || !words[i].known || IsPattern(words[i])) {
      return std::nullopt;
    }
    parsed.values.emplace_back(name, words[i]);
  }
  return parsed;
}

/// Whether `text`, a program of sed, only prints, deletes and replaces.
bool IsPlainSed(std::string_view text) {
  const auto skip = [&](std::string_view set) {
    text.remove_prefix(std::min(text.find_first_not_of(set), text.size()));
  };
  /// Up to the next `mark` that is not behind a backslash, and that. A mark in
  /// brackets is not looked for.
  const auto skip_to = [&](char mark) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '[') {
        const size_t end = text.find_first_of("[]\n\\", i + 1);
        if (end == std::string_view::npos || text[end] != ']' ||
            text.substr(i, end - i).contains(mark) || end == i + 1 ||
            text.substr(i, end - i) == "[^") {
          return false;
        }
        i = end;
      } else if (text[i] == '\\') {
        ++i;
      } else if (text[i] == mark) {
        text.remove_prefix(i + 1);
        return true;
      } else if (text[i] == '\n') {
        return false;
      }
    }
    return false;
  };
  while (!text.empty()) {
    skip(" ;\n");
    for (;;) {
      skip("0123456789$,+~! ");
      if (!text.starts_with('/')) break;
      text.remove_prefix(1);
      if (!skip_to('/')) return false;
      skip("I");
    }
    if (text.empty()) return true;
    const char command = text[0];
    text.remove_prefix(1);
    if (command == 's') {
      if (text.empty()) return false;
      const char mark = text[0];
      if (mark == '\\' || mark == '\n') return false;
      text.remove_prefix(1);
      const bool has_pattern = skip_to(mark);
      if (!has_pattern || !skip_to(mark)) return false;
      skip("gpiI0123456789");
    } else if (command != 'p' && command != 'd' && command != '=' &&
               command != 'q') {
      return false;
    }
    skip(" ");
    if (!text.empty() && text[0] != ';' && text[0] != '\n') return false;
  }
  return true;
}

/// Whether `text`, a program of awk or jq, runs nothing, writes nothing, and
/// prints no environment.
bool IsPlainProgram(std::string_view name, std::string_view text) {
  if (name == "jq") {
    return std::ranges::none_of(
        std::to_array<std::string_view>({"env", "ENV", "import", "include"}),
        [&](std::string_view word) { return text.contains(word); });
  }
  return text.find_first_of("|>@") == std::string_view::npos &&
         std::ranges::none_of(
             std::to_array<std::string_view>({"system", "getline", "ENVIRON",
                                              "PROCINFO", "SYMTAB", "ARGV",
                                              "ARGC"}),
             [&](std::string_view word) { return text.contains(word); });
}

bool IsPlainScript(std::string_view name, const Word& word) {
  if (IsPattern(word)) return false;
  return name == "sed" ? IsPlainSed(word.text)
                       : IsPlainProgram(name, word.text);
}

void AddEach(PlainUse& use, How how, const Operands& words) {
  for (const Word& word : words) use.files.push_back({how, word});
}

std::optional<PlainUse> UseOfFind(const Operands& words) {
  PlainUse use;
  size_t at = 0;
  for (; at < words.size(); ++at) {
    const std::string& text = words[at].text;
    if (text.starts_with('-') || text == "!" || text == "(") break;
    if (!words[at].known || text.find_first_of("*?[") == 0) return std::nullopt;
    use.files.push_back({How::kDirectory, words[at]});
  }
  for (; at < words.size(); ++at) {
    const std::string& text = words[at].text;
    if (!words[at].known) return std::nullopt;
    if (Has(kFindFlags, text)) continue;
    if (!Has(kFindValues, text) || ++at == words.size()) return std::nullopt;
    // What a pattern expands to may be an action.
    if (!words[at].known || IsPattern(words[at])) return std::nullopt;
  }
  return use;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsDigit);
}

/// The operators of `test` that evaluate nothing: -v evaluates an index, and
/// in some shells each number is an expression.
std::optional<PlainUse> UseOfTest(const Operands& words) {
  bool compares_numbers = false, has_text = false;
  for (const Word& word : words) {
    const std::string& text = word.text;
    if (!word.known || IsPattern(word)) return std::nullopt;
    const bool is_operator = text.starts_with('-') && text.size() > 1;
    if (is_operator && !Has(kTestOperators, text)) return std::nullopt;
    if (Has(kTestNumberOperators, text)) compares_numbers = true;
    has_text = has_text ||
               (!is_operator && !IsNumber(text) && text != "!" && text != "]");
  }
  if (compares_numbers && has_text) return std::nullopt;
  return PlainUse{};
}

/// Whether `printf` with this format evaluates no argument.
bool IsPlainFormat(std::string_view format) {
  if (format.starts_with('-')) return false;
  for (size_t i = format.find('%'); i < format.size();
       i = format.find('%', i + 2)) {
    const bool is_text =
        i + 1 < format.size() && (format[i + 1] == 's' || format[i + 1] == '%');
    if (!is_text) return false;
  }
  return true;
}

/// Whether a program whose operands are no files only prints.
bool IsPlainSaying(std::string_view name, const Operands& operands) {
  // A pattern tells what is there.
  if (std::ranges::any_of(operands, IsPattern)) return false;
  if (operands.empty()) return name != "printf" && name != "command";
  const std::string& first = operands[0].text;
  if (name == "printf") return IsPlainFormat(first);
  // In some shells, an expression.
  if (name == "exit") return operands.size() == 1 && IsNumber(first);
  if (name == "date") return first.starts_with('+');
  // Not with "e", which prints the environment.
  if (name == "ps") return first == "aux" || first == "ax";
  return true;
}

/// The changes of `name` to its operands. False: too few of them.
bool AddChanges(PlainUse& use, How how, Operands operands) {
  if (how != How::kCopy && how != How::kMove) {
    AddEach(use, how, operands);
    return !operands.empty();
  }
  if (operands.size() < 2) return false;
  const Word to = operands.back();
  operands.pop_back();
  if (IsPattern(to)) return false;
  for (const Word& from : operands) use.files.push_back({how, from, to});
  return true;
}

/// What git shows for `word`: a commit, a file, or both as COMMIT:FILE. False:
/// a pattern of its own.
bool AddGitOperand(PlainUse& use, const Word& word) {
  if (word.text.find_first_of("*?[") != std::string::npos ||
      word.text.starts_with(':')) {
    return false;
  }
  use.files.push_back({How::kDirectory, word});
  const size_t colon = word.text.rfind(':');
  if (colon != std::string::npos) {
    use.files.push_back(
        {How::kDirectory, policy::KnownWord(word.text.substr(colon + 1))});
  }
  return true;
}

/// Whether `words`, the arguments of a subcommand, start neither an editor nor
/// a program that checks signatures.
bool StartsNothing(std::string_view subcommand, const Parsed& parsed,
                   const Operands& words) {
  const auto has = [&](auto is) { return std::ranges::any_of(words, is); };
  if (has([](const Word& word) { return word.text.contains("%G"); })) {
    return false;
  }
  return subcommand != "commit" || !parsed.values.empty() ||
         has([](const Word& word) { return word.text == "--no-edit"; });
}

std::optional<PlainUse> UseOfGit(const Operands& words) {
  PlainUse use{.is_git = true};
  size_t at = 0;
  for (; at < words.size() && words[at].text.starts_with('-'); ++at) {
    if (words[at].text == "-C" && at + 1 < words.size()) {
      use.files.push_back({How::kEnter, words[++at]});
    } else if (!Has(kGitFlags, words[at].text)) {
      return std::nullopt;
    }
    if (!words[at].known || IsPattern(words[at])) return std::nullopt;
  }
  if (at == words.size() || !words[at].known) return std::nullopt;
  const std::string& subcommand = words[at].text;
  const auto* const known = std::ranges::find_if(
      kGitCommands,
      [&](const PlainGit& one) { return Has(one.subcommands, subcommand); });
  if (known == kGitCommands.end()) return std::nullopt;
  const Operands rest(words.begin() + static_cast<ptrdiff_t>(at) + 1,
                      words.end());
  const auto parsed = ParseOptions(known->options, rest, false);
  if (!parsed || parsed->operands.size() > known->most ||
      !StartsNothing(subcommand, *parsed, rest)) {
    return std::nullopt;
  }
  use.changes = known->changes;
  use.writes_index = known->changes || subcommand == "status" ||
                     subcommand == "diff" || subcommand == "describe";
  for (const Word& word : parsed->operands) {
    if (!AddGitOperand(use, word)) return std::nullopt;
  }
  return use;
}

/// Whether `text` is a mode of chmod that gives nobody the rights of the owner.
bool IsPlainMode(std::string_view text) {
  const bool is_number =
      text.find_first_not_of("01234567") == std::string_view::npos;
  if (is_number) {
    return text.size() == 3 || (text.size() == 4 && text[0] == '0');
  }
  return text.find_first_not_of("ugoa+-=rwxX,") == std::string_view::npos;
}

/// `words`: the arguments of the program `name`.
std::optional<PlainUse> UseOfWords(std::string_view name,
                                   const Operands& words) {
  if (name == "find") return UseOfFind(words);
  if (name == "test" || name == "[") return UseOfTest(words);
  // Without an option it runs what it names.
  if (name == "command" && (words.empty() || !words[0].text.starts_with('-'))) {
    return std::nullopt;
  }
  if (name == "git") return UseOfGit(words);
  const auto* const known = std::ranges::find_if(
      kPrograms, [&](const PlainProgram& one) { return Has(one.names, name); });
  if (known == kPrograms.end()) return std::nullopt;
  using Kind = PlainProgram::Kind;
  auto parsed =
      ParseOptions(known->options, words, known->kind == Kind::kWrapper);
  if (!parsed) return std::nullopt;
  PlainUse use;
  Operands& operands = parsed->operands;
  // A pattern may expand to more.
  const bool is_counted = known->most != SIZE_MAX;
  if (is_counted && (operands.size() > known->most ||
                     std::ranges::any_of(operands, IsPattern))) {
    return std::nullopt;
  }
  switch (known->kind) {
    case Kind::kWrapper:
      return use;
    case Kind::kSays:
      if (!IsPlainSaying(name, operands)) return std::nullopt;
      return use;
    case Kind::kEnters:
      if (operands.size() != 1 || operands[0].text.find_first_of("-+") == 0) {
        return std::nullopt;
      }
      use.files.push_back({How::kEnter, operands[0]});
      return use;
    case Kind::kSearches:
    case Kind::kScripts: {
      // The first operand is no file, unless an option stands for it.
      bool has_script = false;
      for (const auto& [option, value] : parsed->values) {
        const bool is_script =
            option == "e" || option == "expression" || option == "regexp";
        if (!is_script) continue;
        has_script = true;
        if (known->kind == Kind::kScripts && !IsPlainScript(name, value)) {
          return std::nullopt;
        }
      }
      if (name == "rg") {
        const auto options_end = std::ranges::find(words, "--", &Word::text);
        has_script = has_script || std::find_if(words.begin(), options_end,
                                                [](const Word& word) {
                                                  return word.text == "--files";
                                                }) != options_end;
      }
      if (!has_script) {
        if (operands.empty() || IsPattern(operands[0])) return std::nullopt;
        if (known->kind == Kind::kScripts &&
            !IsPlainScript(name, operands[0])) {
          return std::nullopt;
        }
        operands.erase(operands.begin());
      }
      AddEach(use, How::kDirectory, operands);
      return use;
    }
    case Kind::kReads:
      AddEach(use, known->how, operands);
      return use;
    case Kind::kChanges:
      break;
  }
  use.changes = true;
  if (known->how == How::kMode) {
    if (operands.empty() || !IsPlainMode(operands[0].text)) return std::nullopt;
    operands.erase(operands.begin());
  }
  if (!AddChanges(use, known->how, std::move(operands))) return std::nullopt;
  return use;
}

}  // namespace

bool IsHarmlessVariable(std::string_view assignment) {
  const std::string_view name = assignment.substr(0, assignment.find('='));
  return name.starts_with("LC_") || Has(kHarmlessVariables, name) ||
         Has(kHarmlessAssignments, assignment);
}

bool IsPattern(const Word& word) {
  return !word.quoted && word.text.find_first_of("*?[") != std::string::npos;
}

std::optional<PlainUse> UseOf(const policy::Command& command) {
  const std::string_view program = command.program.text;
  const std::string_view name = policy::BaseName(program);
  const std::string_view directory = program.substr(0, program.rfind('/') + 1);
  const bool is_plain =
      command.program.known && !command.remote && !command.contained &&
      command.script != policy::Script::kUnknown &&
      (program == name || directory == "/bin/" || directory == "/usr/bin/") &&
      std::ranges::all_of(command.environment, IsHarmlessVariable);
  if (!is_plain) return std::nullopt;
  auto use = UseOfWords(name, command.arguments);
  if (use && program == name && !Has(kBuiltins, name)) use->searched = name;
  return use;
}

}  // namespace txfs::cli

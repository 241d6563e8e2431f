#include <algorithm>
#include <iterator>
#include <string>

#include "cli/shell/code.h"
#include "cli/shell/option_words.h"

namespace txfs::cli {
namespace {

using policy::KnownWord;
using policy::Word;

/// Reads a program of GNU sed for what it runs.
class SedProgram {
 public:
  explicit SedProgram(std::string_view text) : text_(text) {}

  void Read() {
    while (!IsAtEnd()) {
      if (std::string_view(" \t\n;{}!").contains(text_[at_])) {
        ++at_;
      } else if (!SkipAddress()) {
        ReadCommand();
      }
    }
  }

  std::vector<Word> commands;
  std::vector<Word> files;  ///< that it writes

 private:
  [[nodiscard]] bool IsAtEnd() const { return at_ >= text_.size(); }

  /// Up to `end` without a backslash before it, and behind it.
  std::string_view Until(char end) {
    const size_t begin = at_;
    while (!IsAtEnd() && text_[at_] != end) at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_, text_.size());
    const std::string_view part = text_.substr(begin, at_ - begin);
    if (!IsAtEnd()) ++at_;
    return part;
  }

  bool SkipAddress() {
    const char c = text_[at_];
    if (std::string_view("0123456789$,+~ ").contains(c)) {
      ++at_;
      return true;
    }
    if (c != '/' && c != '\\') return false;
    at_ += c == '/' ? 1 : 2;
    if (at_ > text_.size()) return true;
    Until(c == '/' ? '/' : text_[at_ - 1]);
    while (!IsAtEnd() && (text_[at_] == 'I' || text_[at_] == 'M')) ++at_;
    return true;
  }

  void ReadCommand() {
    const char command = text_[at_++];
    if (command == 's' && !IsAtEnd()) {
      const char delimiter = text_[at_++];
      Until(delimiter);
      const std::string_view replacement = Until(delimiter);
      const size_t end =
          std::min(text_.find_first_of(";\n} ", at_), text_.size());
      const std::string_view flags = text_.substr(at_, end - at_);
      at_ = end;
      const std::string_view before_file = flags.substr(0, flags.find('w'));
      if (flags != before_file) {
        at_ = end - flags.size() + before_file.size() + 1;
        AddFile(Until('\n'));
      }
      if (before_file.contains('e')) AddReplacement(replacement);
    } else if (command == 'y' && !IsAtEnd()) {
      const char delimiter = text_[at_++];
      Until(delimiter);
      Until(delimiter);
    } else if (command == 'e') {
      std::string_view line = Until('\n');
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      if (!line.empty()) commands.push_back(KnownWord(std::string(line)));
    } else if (command == 'w' || command == 'W') {
      AddFile(Until('\n'));
    } else if (std::string_view("aicrR#").contains(command)) {
      Until('\n');
    } else if (std::string_view("btT:").contains(command)) {
      at_ = std::min(text_.find_first_of(";\n", at_), text_.size());
    }
  }

  void AddFile(std::string_view name) {
    name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
    if (!name.empty()) files.push_back(KnownWord(std::string(name)));
  }

  /// With the flag e, a line that a substitution made is run.
  void AddReplacement(std::string_view replacement) {
    Word text;
    for (size_t i = 0; i < replacement.size(); ++i) {
      char c = replacement[i];
      const bool is_escaped = c == '\\' && i + 1 < replacement.size();
      if (is_escaped) c = replacement[++i];
      const bool is_match = is_escaped ? c >= '0' && c <= '9' : c == '&';
      if (is_match && text.known) {
        text.known = false;
        text.known_prefix = text.text.size();
      }
      text.text += is_escaped && c == 'n' ? '\n' : c;
    }
    if (text.known) text.known_prefix = text.text.size();
    commands.push_back(std::move(text));
  }

  std::string_view text_;
  size_t at_ = 0;
};

std::vector<Word> ProgramsOfSed(const std::vector<Word>& words,
                                const std::optional<std::string>& input) {
  const WordSpan rest = WordSpan(words).subspan(1);
  std::vector<Word> programs = ValuesOf(rest, 'e', "expression");
  bool is_named = !programs.empty();
  for (const Word& word : rest) {
    const std::string_view text = word.text;
    if (text.starts_with("-e") && text.size() > 2) {
      programs.push_back(Tail(word, 2));
    }
    is_named = is_named || text.starts_with("-e") || text == "-f" ||
               text.starts_with("--file");
  }
  for (const Word& file : ValuesOf(rest, 'f', "file")) {
    const bool is_input = file.text == "-" || file.text == "/dev/stdin";
    if (is_input && input) programs.push_back(KnownWord(*input));
  }
  const auto first = std::ranges::find_if(
      rest, [](const Word& word) { return !word.text.starts_with('-'); });
  if (!is_named && first != rest.end()) programs.push_back(*first);
  return programs;
}

}  // namespace

SedEffects EffectsOfSed(const std::vector<Word>& words,
                        const std::optional<std::string>& input) {
  SedEffects effects;
  for (const Word& program : ProgramsOfSed(words, input)) {
    SedProgram read(program.text);
    read.Read();
    std::ranges::move(read.commands, std::back_inserter(effects.commands));
    std::ranges::move(read.files, std::back_inserter(effects.files));
  }
  return effects;
}

}  // namespace txfs::cli

#include "cli/shell/option_words.h"

#include <algorithm>
#include <ranges>
#include <string>

namespace txfs::cli {

using policy::Word;

bool IsOptionWord(const Word& word) {
  return word.text.size() > 1 && word.text.starts_with('-');
}

bool IsAssignment(const Word& word) {
  const size_t equals = word.text.find('=');
  if (equals == std::string::npos || equals == 0) return false;
  return std::ranges::all_of(word.text.substr(0, equals), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_';
  });
}

size_t SizeOfOption(const Word& word, std::string_view short_values,
                    std::string_view long_values) {
  const std::string_view text = word.text;
  if (text.starts_with("--")) {
    const bool takes =
        long_values.contains(" " + std::string(text.substr(2)) + " ");
    return takes ? 2 : 1;
  }
  const size_t at = text.find_first_of(short_values, 1);
  return at != std::string_view::npos && at + 1 == text.size() ? 2 : 1;
}

WordSpan BehindOptions(WordSpan words, std::string_view short_values,
                       std::string_view long_values) {
  while (!words.empty() && IsOptionWord(words[0])) {
    if (words[0].text == "--") return words.subspan(1);
    const size_t size = SizeOfOption(words[0], short_values, long_values);
    words = words.subspan(std::min(size, words.size()));
  }
  return words;
}

WordSpan BehindDashes(WordSpan words) {
  const auto dashes = std::ranges::find(words, "--", &Word::text);
  if (dashes == words.end()) return {};
  return words.subspan(static_cast<size_t>(dashes - words.begin()) + 1);
}

WordSpan BehindSubcommand(WordSpan words, std::string_view subcommand,
                          std::string_view short_values,
                          std::string_view long_values) {
  for (const auto part : std::views::split(subcommand, ' ')) {
    words = BehindOptions(words, short_values, long_values);
    const std::string_view wanted(part.begin(), part.end());
    if (words.empty() || words[0].text != wanted) return {};
    words = words.subspan(1);
  }
  return words;
}

std::vector<Word> ValuesOf(WordSpan words, char letter, std::string_view name) {
  std::vector<Word> values;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    if (text.size() < 2 || !text.starts_with('-')) continue;
    const bool is_long = text.starts_with("--");
    const size_t equals = text.find('=');
    if (is_long && !name.empty() && equals != std::string_view::npos &&
        text.substr(2, equals - 2) == name) {
      values.push_back(Tail(words[i], equals + 1));
      continue;
    }
    const bool found = is_long ? !name.empty() && text.substr(2) == name
                               : letter != '\0' && text.back() == letter;
    if (found && i + 1 < words.size()) values.push_back(words[++i]);
  }
  return values;
}

std::vector<Word> Copy(WordSpan words) { return {words.begin(), words.end()}; }

Word Tail(const Word& word, size_t prefix) {
  Word tail = word;
  tail.text = word.text.substr(std::min(prefix, word.text.size()));
  tail.known_prefix -= std::min(prefix, tail.known_prefix);
  return tail;
}

}  // namespace txfs::cli

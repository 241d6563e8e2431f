#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "policy/command.h"

namespace txfs::cli {

using WordSpan = std::span<const policy::Word>;

[[nodiscard]] bool IsOptionWord(const policy::Word& word);
/// NAME=VALUE.
[[nodiscard]] bool IsAssignment(const policy::Word& word);
/// How many words the option `word` takes with its value. `short_values`:
/// letters of options with a value; `long_values`: names, between blanks.
[[nodiscard]] size_t SizeOfOption(const policy::Word& word,
                                  std::string_view short_values,
                                  std::string_view long_values);
/// The words behind the options; "--" ends these.
[[nodiscard]] WordSpan BehindOptions(WordSpan words,
                                     std::string_view short_values,
                                     std::string_view long_values);
/// The words behind "--"; none: there is none.
[[nodiscard]] WordSpan BehindDashes(WordSpan words);
/// The words behind those of `subcommand`, which blanks separate, with options
/// between them; none: `words` begin with others.
[[nodiscard]] WordSpan BehindSubcommand(WordSpan words,
                                        std::string_view subcommand,
                                        std::string_view short_values,
                                        std::string_view long_values);
/// The values of the options `-c` and `--name` in `words`, as the next word or
/// behind "=". `letter` '\0' or `name` "": there is no such option.
[[nodiscard]] std::vector<policy::Word> ValuesOf(WordSpan words, char letter,
                                                 std::string_view name);
[[nodiscard]] std::vector<policy::Word> Copy(WordSpan words);
/// A word with the text behind `prefix`.
[[nodiscard]] policy::Word Tail(const policy::Word& word, size_t prefix);

}  // namespace txfs::cli

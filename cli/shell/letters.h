#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/command.h"

namespace txfs::cli {

/// The text of a word while a shell expands it, with the origin of each byte.
class Letters {
 public:
  enum class Kind : char {
    kPlain = 'p',     ///< written, and not quoted
    kQuoted = 'q',    ///< written in quotes, or of an expansion in quotes
    kExpanded = 'e',  ///< of an expansion without quotes: is split at blanks
    kSplit = 's',     ///< the same, and of a value of IFS that the text sets
    kUnknown = 'u',   ///< stands for text that is not known
  };

  void Add(std::string_view text, Kind kind);
  /// Adds `raw`, written without quotes: a backslash quotes the next byte.
  void AddPlain(std::string_view raw);
  /// Adds `raw`, written in double quotes.
  void AddInQuotes(std::string_view raw);
  /// Adds `raw`, written as $'...'.
  void AddEscaped(std::string_view raw);
  void Add(const Letters& other);
  /// Empty quotes make a word, too.
  void MarkQuoted() { quoted_ = true; }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] bool known() const;

  /// The words after the expansion of braces and of a tilde, and after
  /// splitting, at most `most`.
  [[nodiscard]] std::vector<policy::Word> Split(std::string_view home,
                                                size_t most) const;
  /// As one word: as the value of an assignment, or as a file to redirect to.
  [[nodiscard]] policy::Word AsWord(std::string_view home) const;

 private:
  [[nodiscard]] bool IsAt(size_t i, char c, Kind kind) const {
    return text_[i] == c && kinds_[i] == static_cast<char>(kind);
  }
  [[nodiscard]] Letters Slice(size_t begin, size_t end) const;
  /// The end of the braces that begin at `begin`, and the commas in them; 0:
  /// they are no expansion.
  [[nodiscard]] size_t FindBraces(size_t begin,
                                  std::vector<size_t>& commas) const;
  [[nodiscard]] std::vector<Letters> ExpandBraces(size_t most,
                                                  size_t depth) const;
  [[nodiscard]] Letters WithHome(std::string_view home) const;

  std::string text_;
  std::string kinds_;
  bool quoted_ = false;
};

}  // namespace txfs::cli

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/shell/code.h"

namespace txfs::cli {

/// A token of a program, without comments and blanks.
struct Token {
  enum class Kind : uint8_t { kName, kString, kBackticks, kOther };
  Kind kind = Kind::kOther;
  std::string text;
};
[[nodiscard]] std::vector<Token> Tokens(Language language,
                                        std::string_view code);
[[nodiscard]] bool IsNameByte(char c);

}  // namespace txfs::cli

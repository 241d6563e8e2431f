#pragma once

#include <cstdint>
#include <string_view>

namespace txfs {

/// Whether `text`, which is UTF-8, begins with a character that a terminal does
/// not show or that changes how the text around it is shown: a control
/// character, one without width, one that changes the direction of text
/// (U+202E), or a tag (U+E0000 and above).
[[nodiscard]] constexpr bool BeginsUnseen(std::string_view text) {
  const auto byte = [&](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  const auto is_third = [&](uint8_t second, uint8_t first, uint8_t last) {
    return byte(1) == second && byte(2) >= first && byte(2) <= last;
  };
  switch (byte(0)) {
    case 0xC2:  // C1, and the soft hyphen
      return byte(1) < 0xA0 || byte(1) == 0xAD;
    case 0xD8:  // U+061C
      return byte(1) == 0x9C;
    case 0xE1:  // U+180E
      return is_third(0xA0, 0x8E, 0x8E);
    case 0xE2:  // U+200B to U+200F, U+2028 to U+202E, U+2060 to U+206F
      return is_third(0x80, 0x8B, 0x8F) || is_third(0x80, 0xA8, 0xAE) ||
             is_third(0x81, 0xA0, 0xAF);
    case 0xEF:  // U+FEFF, U+FFF9 to U+FFFB
      return is_third(0xBB, 0xBF, 0xBF) || is_third(0xBF, 0xB9, 0xBB);
    case 0xF3:  // U+E0000 to U+E0FFF
      return byte(1) == 0xA0;
    default:
      return (!text.empty() && byte(0) < 0x20) || byte(0) == 0x7F;
  }
}

}  // namespace txfs

#include "cli/run/quantity.h"

#include <string_view>

namespace txfs::cli {

Result<uint64_t> ParseDuration(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  const std::string unit = text.substr(digits);
  uint64_t factor = 0;
  if (unit.empty() || unit == "s") factor = 1000;
  if (unit == "ms") factor = 1;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (digits == 0 || digits > 9 || factor == 0) {
    return Fail(ErrorKind::kUsage, 0, text + " is no duration",
                "write a number and ms, s, m or h, such as 10m");
  }
  return std::stoull(text.substr(0, digits)) * factor;
}

Result<uint64_t> ParseSize(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  std::string unit = text.substr(digits);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  constexpr std::string_view kLetters = "KMGT";
  const size_t letter = unit.empty() ? 0 : kLetters.find(unit);
  if (digits == 0 || digits > 12 || unit.size() > 1 ||
      letter == std::string_view::npos) {
    return Fail(ErrorKind::kUsage, 0, text + " is no size",
                "write a number and K, M, G or T, such as 4G");
  }
  const int shift = unit.empty() ? 0 : 10 * (static_cast<int>(letter) + 1);
  constexpr uint64_t kMost = 1ULL << 52;
  const uint64_t number = std::stoull(text.substr(0, digits));
  if (number == 0 || number > kMost >> shift) {
    return Fail(ErrorKind::kUsage, 0, text + " is no limit",
                "write more than 0 and at most 4096T");
  }
  return number << shift;
}

}  // namespace txfs::cli

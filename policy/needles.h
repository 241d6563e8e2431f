#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// Finds which of many texts stand in a path, as Aho and Corasick do: in time
/// in proportion to the path, however many there are. A path is read as if it
/// had a slash before and behind it, and in lower case (of ASCII).
class Needles {
 public:
  Needles() = default;
  /// `texts`: in lower case, none empty, none twice.
  explicit Needles(const std::vector<std::string>& texts);

  /// Shows the number of each text that stands in `path` to `visit`, once.
  template <class Visit>
  void ForEachIn(std::string_view path, const Visit& visit) const;

 private:
  /// Where a row of `table_` begins. Row 0 is the state in which no text has
  /// begun.
  using Row = uint32_t;
  static constexpr uint32_t kNone = UINT32_MAX;

  void SetColumns(const std::vector<std::string>& texts);
  Row AddRow();
  Row AddPath(std::string_view text);
  void Link();
  [[nodiscard]] uint16_t ColumnOf(char c) const {
    return columns_[static_cast<unsigned char>(c)];
  }

  /// For each state, the longest text that ends in it (or kNone), and for each
  /// kind of byte the state that follows.
  std::vector<uint32_t> table_;
  std::array<uint16_t, 256> columns_{};  ///< by byte; 0 is the text's
  uint16_t width_ = 0;                   ///< columns in a row
  /// For each text, the longest other one that it ends with, or kNone.
  std::vector<uint32_t> shorter_;
};

template <class Visit>
void Needles::ForEachIn(std::string_view path, const Visit& visit) const {
  if (table_.empty()) return;
  std::vector<bool> seen;
  Row row = 0;
  const auto take = [&](char c) {
    row = table_[row + ColumnOf(c)];
    for (uint32_t text = table_[row]; text != kNone; text = shorter_[text]) {
      if (seen.empty()) seen.resize(shorter_.size());
      // Then so are those that it ends with.
      if (seen[text]) return;
      seen[text] = true;
      visit(text);
    }
  };
  take('/');
  for (const char c : path) take(c);
  take('/');
}

}  // namespace txfs::policy

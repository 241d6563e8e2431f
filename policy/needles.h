#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// Finds which of many texts a path contains, with the algorithm of Aho and
/// Corasick: in time proportional to the length of the path, whatever the
/// number of texts. The path is read in lower case (of ASCII), with a slash
/// before and after it.
class Needles {
 public:
  Needles() = default;
  /// `texts`: in lower case, none empty, no duplicates.
  explicit Needles(const std::vector<std::string>& texts);

  /// Calls `visit` once with the number of each text that `path` contains.
  template <class Visit>
  void ForEachIn(std::string_view path, const Visit& visit) const;

 private:
  /// The index of a row in `table_`. Row 0 is the state in which no text has
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

  /// For each state: the longest text that ends in it (or kNone), and the next
  /// state for each class of bytes.
  std::vector<uint32_t> table_;
  std::array<uint16_t, 256> columns_{};  ///< by byte; column 0 is the text's
  uint16_t width_ = 0;                   ///< columns in a row
  /// For each text, the longest other text that is its suffix, or kNone.
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
      // Then its suffixes have been, too.
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

#include "policy/needles.h"

#include <algorithm>

#include "policy/ascii.h"

namespace txfs::policy {

Needles::Needles(const std::vector<std::string>& texts) {
  if (texts.empty()) return;
  SetColumns(texts);
  AddRow();
  for (uint32_t i = 0; i < texts.size(); ++i) table_[AddPath(texts[i])] = i;
  shorter_.assign(texts.size(), kNone);
  Link();
}

/// Bytes that are in no text share a column.
void Needles::SetColumns(const std::vector<std::string>& texts) {
  constexpr uint16_t kOthers = 1;
  columns_.fill(kOthers);
  width_ = kOthers + 1;
  for (const std::string& text : texts) {
    for (const char c : text) {
      if (ColumnOf(c) != kOthers) continue;
      columns_[static_cast<unsigned char>(c)] = width_;
      columns_[static_cast<unsigned char>(ToUpper(c))] = width_;
      ++width_;
    }
  }
}

Needles::Row Needles::AddRow() {
  const auto row = static_cast<Row>(table_.size());
  table_.resize(table_.size() + width_);
  table_[row] = kNone;
  return row;
}

Needles::Row Needles::AddPath(std::string_view text) {
  Row row = 0;
  for (const char c : text) {
    const size_t cell = row + ColumnOf(c);
    if (table_[cell] == 0) {
      const Row added = AddRow();
      table_[cell] = added;
    }
    row = table_[cell];
  }
  return row;
}

/// Where a text does not go on, what has been read may end with the beginning
/// of another. Goes by length, so that the state of that is complete.
void Needles::Link() {
  struct State {
    Row row;
    Row rest;  ///< the longest that it ends with and that is a state, too
  };
  std::vector<State> states{{0, 0}};
  for (size_t i = 0; i < states.size(); ++i) {
    const auto [row, rest] = states[i];
    for (uint16_t column = 1; column < width_; ++column) {
      uint32_t& next = table_[row + column];
      const Row otherwise = row == 0 ? 0 : table_[rest + column];
      if (next == 0) {
        next = otherwise;
        continue;
      }
      states.push_back({next, otherwise});
      const uint32_t ending = table_[otherwise];
      uint32_t& text = table_[next];
      (text == kNone ? text : shorter_[text]) = ending;
    }
  }
}

}  // namespace txfs::policy

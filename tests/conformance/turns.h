#pragma once

#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

namespace txfs::testing {

/// What becomes of some work in a transaction.
enum class Turn : uint8_t {
  kNothing,
  kSavepoint,
  kRollback,
  kCommit,
  kCommitPart,
  kDiscard,
  kDiscardPart,
  kUndo,
  kRemount,
};

inline std::ostream& operator<<(std::ostream& out, Turn turn) {
  static constexpr std::array kNames = {
      "nothing", "savepoint",    "rollback", "commit", "commit part",
      "discard", "discard part", "undo",     "remount"};
  return out << kNames.at(static_cast<size_t>(turn));
}

/// One of them, each as often as its weight says. Shrinks to the first.
inline rc::Gen<Turn> AnyTurn(
    const std::vector<std::pair<size_t, Turn>>& weights) {
  std::vector<Turn> turns;
  for (const auto& [weight, turn] : weights) {
    turns.insert(turns.end(), weight, turn);
  }
  return rc::gen::elementOf(turns);
}

}  // namespace txfs::testing

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "journal/change.h"
#include "journal/denials.h"
#include "journal/support/types.h"

namespace txfs {

class Tables;

/// The longest string in a denial, bytes; and the longest id of a rule.
inline constexpr size_t kMaxDenialText = 4096;
inline constexpr size_t kMaxDenialRule = 255;

/// Makes the strings of `denial` no longer than that.
void CutDenial(Change& denial);

/// The tables `denial` and `rule` in memory. Bounded: whoever is refused
/// without end makes it count, not grow. A copy costs what it holds.
class DenialTable {
 public:
  static constexpr size_t kMaxEntries = 1000;
  using RuleKey = std::pair<uint64_t, std::string>;  ///< policy, id

  /// Rows as they were saved.
  void Load(LogEntry entry);
  void Load(DeniedRule rule);

  /// `denial` happened; its LSN is above all before. The same as before but
  /// for time, process and place in the file is counted; of different ones the
  /// one that has not come for the longest time makes room.
  void Add(Lsn lsn, Change denial);

  /// Puts into `tables`, which are as `before` says, what differs.
  void SaveTo(Tables& tables, const DenialTable& before) const;

  [[nodiscard]] Denials Report() const;
  [[nodiscard]] const std::map<RuleKey, DeniedRule>& rules() const {
    return rules_;
  }

 private:
  void Count(const Change& denial);

  std::map<Lsn, LogEntry> entries_;
  std::map<std::string, Lsn> by_content_;  ///< which of them is about what
  std::map<RuleKey, DeniedRule> rules_;
};

}  // namespace txfs

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

/// Longest string in a denial, and longest id of a rule, bytes.
inline constexpr size_t kMaxDenialText = 4096;
inline constexpr size_t kMaxDenialRule = 255;

/// Cuts the strings of `denial` to these lengths.
void CutDenial(Change& denial);

/// The tables `denial` and `rule` in memory. Bounded: a process that is refused
/// again and again makes counts grow, not tables. A copy costs what it holds.
class DenialTable {
 public:
  static constexpr size_t kMaxEntries = 1000;
  using RuleKey = std::pair<uint64_t, std::string>;  ///< policy, id

  /// Adds rows as they were saved.
  void Load(LogEntry entry);
  void Load(DeniedRule rule);

  /// Adds `denial`; `lsn` must be above all before. A denial that differs from
  /// an entry only in time, pid, offset and length is counted there. Above
  /// kMaxEntries, the entry whose last denial is the oldest is dropped.
  void Add(Lsn lsn, Change denial);

  /// Writes the differences to `before`, which `tables` have, to `tables`.
  void SaveTo(Tables& tables, const DenialTable& before) const;

  [[nodiscard]] Denials Report() const;
  [[nodiscard]] const std::map<RuleKey, DeniedRule>& rules() const {
    return rules_;
  }

 private:
  void Count(const Change& denial);

  std::map<Lsn, LogEntry> entries_;
  /// LSN of the entry with this content.
  std::map<std::string, Lsn> by_content_;
  std::map<RuleKey, DeniedRule> rules_;
};

}  // namespace txfs

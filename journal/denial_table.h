#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
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
/// again and again makes counts grow, not tables. The first and the last denial
/// of each rule stay, whatever else comes. A copy costs what it holds.
class DenialTable {
 public:
  static constexpr size_t kMaxEntries = 1000;
  using RuleKey = std::pair<uint64_t, std::string>;  ///< policy, id

  /// Adds rows as they were saved.
  void Load(LogEntry entry);
  void Load(DeniedRule rule);

  /// Adds `denial`; `lsn` must be above all before. A denial that differs from
  /// an entry only in time, pid, offset and length is counted there. Above
  /// kMaxEntries, an entry of the rule with the most entries is dropped: of
  /// those that have neither its first nor its last denial, the one whose last
  /// denial is the oldest.
  void Add(Lsn lsn, Change denial);

  /// Writes the differences to `before`, which `tables` have, to `tables`.
  void SaveTo(Tables& tables, const DenialTable& before) const;

  [[nodiscard]] Denials Report() const;
  [[nodiscard]] const std::map<RuleKey, DeniedRule>& rules() const {
    return rules_;
  }

 private:
  /// The entries of one rule, by LSN, and the one with its first denial.
  struct Evidence {
    std::set<Lsn> lsns;
    Lsn first = kNoLsn;
  };
  static RuleKey KeyOf(const LogEntry& entry) {
    return {entry.change.policy, entry.change.rule};
  }
  void Count(const Change& denial);
  /// Puts an entry that is in no evidence into `entries_` and that of its rule.
  void Insert(LogEntry entry);
  void Drop();

  std::map<Lsn, LogEntry> entries_;
  std::map<RuleKey, Evidence> evidence_;
  /// LSN of the entry with this content.
  std::map<std::string, Lsn> by_content_;
  std::map<RuleKey, DeniedRule> rules_;
};

}  // namespace txfs

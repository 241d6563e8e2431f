#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "journal/image.h"
#include "journal/support/result.h"

namespace txfs {

/// A violation of docs/format.md.
struct Problem {
  std::string kind;     ///< for programs; txfs(1) lists them
  std::string where;    ///< file, relative to the store
  std::string message;  ///< a sentence

  auto operator<=>(const Problem&) const = default;
};

/// The result of a check, and how much it read.
struct CheckReport {
  std::vector<Problem> problems;
  /// Sentences about what is worth knowing but not a problem.
  std::vector<std::string> notes;
  uint64_t transactions = 0;  ///< open transactions
  uint64_t changes = 0;       ///< in their logs and intakes
  uint64_t inodes = 0;
  uint64_t content_bytes = 0;  ///< whose checksum was computed
  std::map<std::pair<std::string, std::string>, uint64_t> left_out;
};

/// Collects the findings about one file or directory.
class Findings {
 public:
  /// `place`: path relative to the store; "" is the store itself.
  Findings(CheckReport& report, std::string place)
      : report_(report), place_(std::move(place)) {}

  /// The findings about `name` in this directory, for the same report.
  [[nodiscard]] Findings Below(std::string_view name) const;

  /// Adds a problem. Keeps the first hundred of one kind at one place.
  void Add(std::string_view kind, std::string message);
  /// Adds the error's message. EPROTONOSUPPORT becomes a problem of kind
  /// "version".
  void Add(std::string_view kind, const Error& error);
  void Note(std::string sentence);

  [[nodiscard]] CheckReport& report() { return report_; }
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  static constexpr uint64_t kMaxOfAKind = 100;
  CheckReport& report_;
  std::string place_;
};

/// Adds, for each kind and place, one problem that counts the problems left
/// out.
void FinishReport(CheckReport& report);

/// The problems that are in both lists. Of two checks of a store that is in
/// use, these are not effects of a concurrent change.
[[nodiscard]] std::vector<Problem> InBoth(const std::vector<Problem>& a,
                                          const std::vector<Problem>& b);

/// The state of a journal after the replay of its intake.
struct JournalContent {
  Image image;
  bool complete = false;  ///< all of it could be read
};

/// Checks tables, log, intake and spool of the transaction directory `dir`
/// against each other. Writes nothing, survives any damage, and needs no lock:
/// while another process writes, check twice and take only the problems found
/// both times (InBoth). Damage is in the findings. Errors: kBusy, and failures
/// of the machine.
Result<JournalContent> CheckJournal(int dir, const Findings& findings);

}  // namespace txfs

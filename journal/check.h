#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "journal/image.h"
#include "journal/support/result.h"

namespace txfs {

/// Something that is not as docs/format.md says.
struct Problem {
  std::string kind;     ///< for programs; txfs(1) lists them
  std::string where;    ///< file, relative to the store
  std::string message;  ///< a sentence

  auto operator<=>(const Problem&) const = default;
};

/// What a check found, and how much it looked at.
struct CheckReport {
  std::vector<Problem> problems;
  std::vector<std::string> notes;  ///< sentences: no problem, but worth knowing
  uint64_t transactions = 0;       ///< open ones
  uint64_t changes = 0;            ///< of their logs and intakes
  uint64_t inodes = 0;
  uint64_t content_bytes = 0;  ///< whose checksum was computed
  std::map<std::pair<std::string, std::string>, uint64_t> left_out;
};

/// Where checks put what they find about one file or directory.
class Findings {
 public:
  /// `place`: path relative to the store; "" is the store itself.
  Findings(CheckReport& report, std::string place)
      : report_(report), place_(std::move(place)) {}

  /// The same report, about `name` in this directory.
  [[nodiscard]] Findings Below(std::string_view name) const;

  /// Of one kind at one place only the first hundred are kept.
  void Add(std::string_view kind, std::string message);
  /// The error's message; EPROTONOSUPPORT is a problem of kind "version".
  void Add(std::string_view kind, const Error& error);
  void Note(std::string sentence);

  [[nodiscard]] CheckReport& report() { return report_; }
  [[nodiscard]] const std::string& place() const { return place_; }

 private:
  static constexpr uint64_t kMaxOfAKind = 100;
  CheckReport& report_;
  std::string place_;
};

/// Says how many problems were left out, in a last one of each kind.
void FinishReport(CheckReport& report);

/// The problems that are in both: of two looks at a store in use, those that
/// are no matter of the moment.
[[nodiscard]] std::vector<Problem> InBoth(const std::vector<Problem>& a,
                                          const std::vector<Problem>& b);

/// What a journal says after its intake is replayed.
struct JournalContent {
  Image image;
  bool complete = false;  ///< all of it could be read
};

/// Checks tables, log, intake and spool of the transaction directory `dir`
/// against each other. Writes nothing, dies of nothing that it reads, and needs
/// no lock: while somebody writes, a problem found counts only if it is found
/// again. Error: kBusy, or of the machine; never damage.
Result<JournalContent> CheckJournal(int dir, const Findings& findings);

}  // namespace txfs

#include "journal/check.h"

#include <algorithm>
#include <map>
#include <set>

#include "journal/check_log.h"
#include "journal/check_spool.h"
#include "journal/db_dump.h"
#include "journal/db_pages.h"
#include "journal/denial_table.h"
#include "journal/intake.h"
#include "journal/rows.h"

namespace txfs {
namespace {

constexpr std::string_view kTableNames[] = {
    "inode", "origin",    "dentry", "extent", "xattr",
    "log",   "savepoint", "denial", "rule",   "meta",
};
constexpr std::string_view kOpenStates[] = {"active", "committing",
                                            "committed"};

/// Damage is a problem; all else is the checker's own trouble.
bool IsDamage(const Error& error) {
  return error.code == EBADMSG || error.code == EPROTONOSUPPORT;
}

/// Decodes the rows of the tables as they come.
class TableCheck {
 public:
  TableCheck(Findings findings, Replay& replay)
      : findings_(std::move(findings)), replay_(replay) {}

  void Visit(std::string_view table, ByteSpan key, ByteSpan value);
  /// After the last row.
  void Finish();

  Image image;
  std::vector<Savepoint> savepoints;  ///< oldest first
  std::optional<IntakeCursor> cursor;
  bool sound = true;  ///< every row could be decoded

 private:
  void BadRow(std::string_view table, const std::string& what);
  void VisitMeta(std::string_view key, ByteSpan value);
  void VisitInode(ByteSpan key, ByteSpan value);
  void VisitOrigin(ByteSpan key, ByteSpan value);
  void VisitDentry(ByteSpan key, ByteSpan value);
  void VisitExtent(ByteSpan key, ByteSpan value);
  void VisitXattr(ByteSpan key, ByteSpan value);
  void VisitLog(ByteSpan key, ByteSpan value);
  void VisitSavepoint(ByteSpan key, ByteSpan value);
  void VisitRule(ByteSpan key, ByteSpan value);
  void VisitDenial(ByteSpan key, ByteSpan value);
  void CheckDenials();
  void CheckCursor();

  Findings findings_;
  Replay& replay_;
  uint32_t version_ = 0;
  std::set<std::string, std::less<>> tables_;
  std::map<DenialTable::RuleKey, uint64_t> rules_;   ///< how often
  std::map<DenialTable::RuleKey, uint64_t> denied_;  ///< of which is known what
  std::set<Lsn> denials_;
};

void TableCheck::BadRow(std::string_view table, const std::string& what) {
  sound = false;
  findings_.Add("tables.row", "table " + std::string(table) + ": " + what);
}

void TableCheck::Visit(std::string_view table, ByteSpan key, ByteSpan value) {
  if (table.empty()) {
    tables_.emplace(AsText(key));
    if (std::ranges::count(kTableNames, AsText(key)) == 0) {
      findings_.Add("tables.row", "unknown table " + Quote(AsText(key)));
    }
  } else if (table == "meta") {
    VisitMeta(AsText(key), value);
  } else if (table == "inode") {
    VisitInode(key, value);
  } else if (table == "origin") {
    VisitOrigin(key, value);
  } else if (table == "dentry") {
    VisitDentry(key, value);
  } else if (table == "extent") {
    VisitExtent(key, value);
  } else if (table == "xattr") {
    VisitXattr(key, value);
  } else if (table == "log") {
    VisitLog(key, value);
  } else if (table == "savepoint") {
    VisitSavepoint(key, value);
  } else if (table == "rule") {
    VisitRule(key, value);
  } else if (table == "denial") {
    VisitDenial(key, value);
  } else {
    BadRow(table, "its rows are of an unknown kind");
  }
}

void TableCheck::VisitMeta(std::string_view key, ByteSpan value) {
  if (key == kFormatKey) {
    Decoder decoder(value);
    const auto version = decoder.Get<uint32_t>();
    if (decoder.ok() && decoder.remaining() == 0) version_ = version;
    if (version_ > kTablesVersion) {
      findings_.Add("version", "the tables have format version " +
                                   std::to_string(version_) +
                                   ", this program knows " +
                                   std::to_string(kTablesVersion));
    }
  } else if (key == kCursorKey) {
    cursor = DecodeCursor(value);
  } else if (key == std::string(kFactPrefix) + "state") {
    if (std::ranges::count(kOpenStates, AsText(value)) == 0) {
      BadRow("meta", "unknown state " + Quote(AsText(value)));
    }
  } else if (!key.starts_with(kFactPrefix)) {
    BadRow("meta", "unknown key " + Quote(key));
  }
}

void TableCheck::VisitInode(ByteSpan key, ByteSpan value) {
  const auto row = DecodeInodeRow(key, value);
  if (!row) return BadRow("inode", "a row cannot be decoded");
  if (row->ino == kNoIno)
    return BadRow("inode", "a row has the invalid inode number 0");
  image.inodes[row->ino].attr = row->attr;
}

void TableCheck::VisitOrigin(ByteSpan key, ByteSpan value) {
  const auto ino = DecodeInoKey(key);
  InodeRecord record;
  if (!ino || !DecodeOriginRow(value, record)) {
    return BadRow("origin", "a row cannot be decoded");
  }
  const auto inode = image.inodes.find(*ino);
  if (inode == image.inodes.end()) {
    return BadRow("origin",
                  "inode " + std::to_string(Raw(*ino)) + " has no record");
  }
  if (!record.base && record.symlink.empty()) {
    BadRow("origin",
           "the row of inode " + std::to_string(Raw(*ino)) + " is empty");
  }
  inode->second.base = std::move(record.base);
  inode->second.symlink = std::move(record.symlink);
}

void TableCheck::VisitDentry(ByteSpan key, ByteSpan value) {
  const auto row = DecodeDentryRow(key, value);
  if (!row || row->name.empty() || row->value.kind == DentryKind::kAbsent) {
    return BadRow("dentry", "a row cannot be decoded");
  }
  image.SetDentry(row->parent, row->name, row->value);
}

void TableCheck::VisitExtent(ByteSpan key, ByteSpan value) {
  const auto row = DecodeExtentRow(key, value);
  if (!row) return BadRow("extent", "a row cannot be decoded");
  image.PutExtent(row->ino, row->extent);
}

void TableCheck::VisitXattr(ByteSpan key, ByteSpan value) {
  const auto row = DecodeXattrKey(key);
  if (!row || row->name.empty()) {
    return BadRow("xattr", "a row cannot be decoded");
  }
  image.SetXattr(row->ino, row->name, std::string(AsText(value)));
}

void TableCheck::VisitLog(ByteSpan key, ByteSpan value) {
  const auto lsn = DecodeLogKey(key);
  if (!lsn) return BadRow("log", "a key cannot be decoded");
  if (denials_.contains(*lsn)) {
    BadRow("denial",
           "change " + std::to_string(Raw(*lsn)) + " is also in the log");
  }
  replay_.Add(*lsn, value);
}

void TableCheck::VisitSavepoint(ByteSpan key, ByteSpan value) {
  auto savepoint = DecodeSavepointRow(key, value);
  if (!savepoint) return BadRow("savepoint", "a row cannot be decoded");
  savepoints.push_back(*std::move(savepoint));
}

void TableCheck::VisitRule(ByteSpan key, ByteSpan value) {
  const auto rule = DecodeRuleRow(key, value);
  if (!rule) return BadRow("rule", "a row cannot be decoded");
  rules_[{rule->policy, rule->rule}] = rule->count;
}

void TableCheck::VisitDenial(ByteSpan key, ByteSpan value) {
  const auto denial = DecodeDenialRow(key, value);
  if (!denial) return BadRow("denial", "a row cannot be decoded");
  denials_.insert(denial->lsn);
  denied_[{denial->change.policy, denial->change.rule}] += denial->count;
}

/// Denials have no rows in the log, and the newest has one of its own.
void TableCheck::CheckDenials() {
  uint64_t counted = 0;
  for (const auto& [rule, count] : rules_) counted += count;
  for (const auto& [rule, count] : denied_) {
    const auto found = rules_.find(rule);
    if (found != rules_.end() && found->second >= count) continue;
    BadRow("rule", Quote(rule.second) + " has a count lower than its denials");
  }
  if (denials_.size() > DenialTable::kMaxEntries) {
    BadRow("denial",
           "there are too many rows: " + std::to_string(denials_.size()));
  }
  if (!denials_.empty()) replay_.Skip(Next(*denials_.rbegin()));
  if (replay_.missing() == counted) return;
  findings_.Add("log.gap",
                "the log lacks " + std::to_string(replay_.missing()) +
                    " changes, but rules refused " + std::to_string(counted));
}

void TableCheck::CheckCursor() {
  if (!cursor) {
    findings_.Add("tables.cursor",
                  "the cursor is missing or cannot be decoded");
  } else if (cursor->next_lsn != replay_.next()) {
    findings_.Add("tables.cursor", "the cursor expects change " +
                                       std::to_string(Raw(cursor->next_lsn)) +
                                       ", the log continues with change " +
                                       std::to_string(Raw(replay_.next())));
  }
}

void TableCheck::Finish() {
  if (version_ == 0) findings_.Add("version", "the tables have no version");
  for (const char* table : {"denial", "rule"}) {
    if (version_ < kVersionWithDenials || tables_.contains(table)) continue;
    BadRow(table, "it is missing");
  }
  CheckDenials();
  CheckCursor();
}

/// Replays the records that are not in the tables yet.
Status CheckIntake(int dir, const std::optional<IntakeCursor>& cursor,
                   SpoolReader* spool, Replay& replay, Findings findings) {
  auto intake = Intake::Copy(dir);
  if (!intake && IsDamage(intake.error())) {
    findings.Add("intake.header", intake.error());
    return {};
  }
  if (!intake) return std::unexpected(std::move(intake).error());
  if (!cursor) return {};
  (*intake)->Recover(*cursor, [&](const IntakeRecord& record) {
    const std::string number = "change " + std::to_string(Raw(record.lsn));
    if (!DecodeChange(record.change)) {
      findings.Add("intake.record", "the record of " + number +
                                        " is intact, but cannot be decoded");
      return false;
    }
    if (spool != nullptr && record.content.segment != 0 &&
        record.inline_bytes.empty()) {
      const Status verified = spool->Verify(record.content);
      if (!verified) {
        findings.Add("intake.content",
                     number +
                         " lost its content; recovery drops it and all later "
                         "changes: " +
                         verified.error().message);
        return false;
      }
    }
    replay.Add(record.lsn, record.change);
    return true;
  });
  return {};
}

}  // namespace

Findings Findings::Below(std::string_view name) const {
  return {report_, place_.empty() ? std::string(name)
                                  : place_ + "/" + std::string(name)};
}

void Findings::Add(std::string_view kind, std::string message) {
  uint64_t& count = report_.left_out[{std::string(kind), place_}];
  if (++count > kMaxOfAKind) return;
  report_.problems.push_back({std::string(kind), place_, std::move(message)});
}

void Findings::Add(std::string_view kind, const Error& error) {
  if (error.code == EPROTONOSUPPORT) kind = "version";
  Add(kind, error.code == EBADMSG ? error.message : error.ToString());
}

void Findings::Note(std::string sentence) {
  report_.notes.push_back(std::move(sentence));
}

void FinishReport(CheckReport& report) {
  for (const auto& [key, count] : report.left_out) {
    const uint64_t kept = static_cast<uint64_t>(
        std::ranges::count_if(report.problems, [&](const Problem& problem) {
          return problem.kind == key.first && problem.where == key.second;
        }));
    if (count <= kept) continue;
    report.problems.push_back(
        {key.first, key.second,
         "and " + std::to_string(count - kept) + " more of this kind"});
  }
  report.left_out.clear();
}

std::vector<Problem> InBoth(const std::vector<Problem>& a,
                            const std::vector<Problem>& b) {
  std::vector<Problem> both;
  for (const Problem& problem : a) {
    if (std::ranges::count(b, problem) != 0) both.push_back(problem);
  }
  return both;
}

Result<JournalContent> CheckJournal(int dir, const Findings& findings) {
  Findings db = findings.Below("db");
  Replay replay(db);
  TableCheck tables(db, replay);
  const auto copy = CopyTables(dir);
  Status read =
      copy ? CheckPages(copy->get()) : Status(std::unexpected(copy.error()));
  if (read) {
    read = DumpTables(
        copy->get(), [&](std::string_view table, ByteSpan key, ByteSpan value) {
          tables.Visit(table, key, value);
        });
  }
  if (!read && !IsDamage(read.error())) return std::unexpected(read.error());
  if (!read) {
    db.Add("tables.damaged", "the tables are damaged: " + read.error().message);
  } else {
    tables.Finish();
    if (replay.complete()) {
      replay.CompareWith(tables.image, db);
      replay.CompareWith(tables.savepoints, db);
    }
  }

  JournalContent content;
  auto spool = SpoolReader::Open(dir);
  if (!spool && !IsDamage(spool.error())) {
    return std::unexpected(std::move(spool).error());
  }
  std::set<uint32_t> used;
  const auto use = [&](const Image& image) { used.merge(SegmentsOf(image)); };
  if (!spool) {
    findings.Below("spool").Add("spool.missing", "the spool is missing");
  } else if (read) {
    use(tables.image);
    const auto visit_pasts = [&](const Replay::PastVisitor& visit) {
      replay.VisitPasts(tables.savepoints,
                        [&](const Image& past, const Rewind& back) {
                          visit(past, back);
                          used.merge(SegmentsOf(back));
                        });
    };
    CheckContent(*spool, tables.image, visit_pasts, findings.Below("spool"));
  }
  TRY(CheckIntake(dir, read ? tables.cursor : std::nullopt,
                  spool ? &*spool : nullptr, replay, findings.Below("intake")));
  if (spool && read) {
    use(replay.image());
    TRY(CheckSegments(*spool, used, findings.Below("spool")));
  }
  content.complete = read && tables.sound && replay.complete();
  content.image = std::move(replay).Take();
  return content;
}

}  // namespace txfs

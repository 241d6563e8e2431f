#include "fs/check/check.h"

#include <fcntl.h>
#include <sys/file.h>

#include <optional>
#include <vector>

#include "fs/check/check_commits.h"
#include "fs/origin/preimages.h"
#include "fs/tree/check_tree.h"
#include "journal/check_store.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// Keeps daemons and commands away while it is held; unlike FileLock it leaves
/// the file as it is. Nothing when somebody is there already.
std::optional<UniqueFd> TryLock(int dir) {
  auto lock = OpenFileBelow(dir, "lock", O_RDONLY);
  if (!lock || ::flock(lock->get(), LOCK_SH | LOCK_NB) != 0) {
    return std::nullopt;
  }
  return std::move(*lock);
}

/// All that a commit brings is in the vault, and some of it was moved there.
void ForgetContent(const Findings& findings) {
  CheckReport& report = Findings(findings).report();
  const std::string kind = "spool.content";
  const std::string place = findings.Below("spool").place();
  std::erase_if(report.problems, [&](const Problem& problem) {
    return problem.kind == kind && problem.where == place;
  });
  report.left_out.erase({kind, place});
}

Status CheckTransaction(int store, const std::string& id,
                        const BaseDirectory* base, const Findings& findings,
                        bool ends, bool* in_use) {
  const auto dir = OpenDirectoryBelow(store, "txn/" + id);
  // It may have ended meanwhile.
  if (!dir && dir.error().code == ENOENT) return {};
  if (!dir) return std::unexpected(dir.error());
  const std::optional<UniqueFd> lock = TryLock(dir->get());
  if (!lock) *in_use = true;
  TRY(CheckPreimages(dir->get(), findings));
  const JournalContent content = TRY(CheckJournal(dir->get(), findings));
  if (ends) ForgetContent(findings);
  Findings(findings).report().inodes += content.image.inodes.size();
  if (content.complete) {
    CheckTree(content.image, base, findings.Below("db"));
  } else {
    Findings(findings).Note(findings.place() +
                            " could not be read completely: the tree of its "
                            "files was not checked");
  }
  return {};
}

Result<CheckReport> CheckOnce(int store, const BaseDirectory* base,
                              bool* in_use) {
  CheckReport report;
  const Findings findings(report, "");
  const StoreLayout layout = TRY(CheckLayout(store, findings));
  std::optional<std::string> ending;
  if (layout.complete) ending = TRY(CheckCommits(store, base, findings));
  for (const std::string& id : layout.open) {
    TRY(CheckTransaction(store, id, base, findings.Below("txn").Below(id),
                         ending == id, in_use));
  }
  return report;
}

}  // namespace

Result<CheckReport> CheckStore(int store, const BaseDirectory* base) {
  bool in_use = false;
  Result<CheckReport> checked = CheckOnce(store, base, &in_use);
  if (!checked) return checked;
  CheckReport& report = *checked;
  if (in_use && !report.problems.empty()) {
    // What died while it was looked at is not in the next look's tables.
    const Result<CheckReport> again = CheckOnce(store, base, &in_use);
    if (!again) return again;
    report.problems = InBoth(report.problems, again->problems);
    report.left_out.clear();
  }
  FinishReport(report);
  if (base == nullptr) {
    report.notes.emplace_back(
        "the base is not available: link counts that depend on it were checked "
        "only approximately");
  }
  return checked;
}

}  // namespace txfs

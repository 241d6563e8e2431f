#include "journal/history.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "journal/support/crash_point.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr const char* kHistoryDirectory = "history";
constexpr const char* kIntent = "intent";
/// A summary gets less longer by the mark that it was undone.
constexpr uint64_t kSummaryGrowth = 4096;
/// The largest plan or image that is read, bytes.
constexpr size_t kPlanMax = size_t{1} << 30;

std::string PathOf(const std::string& id) {
  return std::string(kHistoryDirectory) + "/" + id;
}
constexpr std::string_view kPlanSuffix = ".plan";
std::string PlanPath(const std::string& id) {
  return PathOf(id) + std::string(kPlanSuffix);
}
std::string ImagePath(const std::string& id) { return PathOf(id) + ".image"; }
std::string ManifestPath(const std::string& id) {
  return PathOf(id) + ".vault";
}

/// What is written behind the point of no return.
std::vector<std::string> PathsWithRoom(const TransactionSummary& summary) {
  std::vector<std::string> paths{ImagePath(summary.id),
                                 ManifestPath(summary.id), PathOf(summary.id)};
  if (summary.kind == TransactionKind::kUndo) {
    paths.push_back(PathOf(summary.of));
  }
  return paths;
}

}  // namespace

Result<TransactionSummary> ReadSummary(int dir, const std::string& path,
                                       const std::string& id) {
  const std::string bytes = TRY(ReadWholeFile(dir, path));
  auto summary = DecodeSummary(AsBytes(bytes));
  if (summary && summary->id == id) return summary;
  Error error = summary
                    ? Error{EBADMSG, "it belongs to another transaction", ""}
                    : std::move(summary).error();
  error.message = PathOfFd(dir) + "/" + path + ": " + error.message;
  return std::unexpected(std::move(error));
}

Result<FileLock> TransactionHistory::LockCommits(int timeout_ms) const {
  return FileLock::Take(store_, "commit.lock", timeout_ms);
}

bool TransactionHistory::HasIntent() const {
  // Where that cannot be known, whoever reads it learns why.
  const auto exists = Exists(store_, kIntent);
  return !exists || *exists;
}

Result<std::string> TransactionHistory::ReadIntent() const {
  return ReadWholeFile(store_, kIntent, kPlanMax);
}

Status TransactionHistory::MakeRoom(const TransactionSummary& summary,
                                    uint64_t bytes) const {
  std::vector<uint64_t> sizes{bytes, bytes, EncodeSummary(summary).size()};
  if (summary.kind == TransactionKind::kUndo) {
    const TransactionSummary undone = TRY(Read(summary.of));
    sizes.push_back(EncodeSummary(undone).size() + kSummaryGrowth);
  }
  const std::vector<std::string> paths = PathsWithRoom(summary);
  for (size_t i = 0; i < paths.size(); ++i) {
    TRY(MakeRoomFor(store_, paths[i], sizes[i]));
  }
  return {};
}

Status TransactionHistory::DropRoom(const TransactionSummary& summary) const {
  for (const std::string& path : PathsWithRoom(summary)) {
    TRY(RemoveTree(store_, path + std::string(kTemporarySuffix)));
  }
  return {};
}

Status TransactionHistory::DropUnfinished(
    const std::function<Result<bool>(const std::string&)>& is_open) const {
  if (HasIntent()) return {};
  for (const std::string& name : TRY(ListNames(store_, kHistoryDirectory))) {
    const auto [id, suffix] = SplitHistoryName(name);
    // Who gives up a plan comes back for it.
    if (!suffix.ends_with(kTemporarySuffix) || suffix == kDroppedPlanSuffix) {
      continue;
    }
    if (suffix == kTemporarySuffix && TRY(is_open(std::string(id)))) continue;
    TRY(RemoveTree(store_, PathOf(name)));
  }
  return {};
}

Status TransactionHistory::WriteIntent(std::string_view plan) const {
  return ReplaceFile(store_, kIntent, plan);
}

Status TransactionHistory::FinishIntent(const std::string& id) const {
  CrashPoint();
  if (auto done = RenameBelow(store_, kIntent, PlanPath(id));
      !done && done.error().code != ENOENT) {
    return done;
  }
  TRY(SyncDirectory(store_, kHistoryDirectory));
  return SyncDirectory(store_, ".");
}

Result<std::vector<std::string>> TransactionHistory::Ids() const {
  std::vector<std::string> names = TRY(ListNames(store_, kHistoryDirectory));
  std::erase_if(names, [](const auto& name) { return !IsTransactionId(name); });
  return names;
}

Result<std::vector<TransactionSummary>> TransactionHistory::ReadAll() const {
  std::vector<TransactionSummary> list;
  for (const std::string& id : TRY(Ids())) list.push_back(TRY(Read(id)));
  std::ranges::stable_sort(list, {}, &TransactionSummary::ended);
  return list;
}

Result<std::vector<TransactionSummary>> TransactionHistory::ReadWithPlans()
    const {
  std::set<std::string> ids;
  for (const std::string& name : TRY(ListNames(store_, kHistoryDirectory))) {
    const auto [id, suffix] = SplitHistoryName(name);
    if (!suffix.empty() && IsTransactionId(id)) ids.emplace(id);
  }
  std::vector<TransactionSummary> list;
  for (const std::string& id : ids) {
    if (TRY(Has(id))) list.push_back(TRY(Read(id)));
  }
  std::ranges::stable_sort(list, {}, &TransactionSummary::ended);
  return list;
}

Result<bool> TransactionHistory::Has(const std::string& id) const {
  return Exists(store_, PathOf(id));
}

Result<TransactionSummary> TransactionHistory::Read(
    const std::string& id) const {
  TransactionSummary summary = TRY(ReadSummary(store_, PathOf(id), id));
  if (!IsEnded(summary) || summary.ended == Timestamp{}) {
    return Fail(EBADMSG,
                PathOfFd(store_) + "/" + PathOf(id) +
                    ": it says that the transaction is open",
                "`txfs fsck` lists all damage");
  }
  summary.undoable = summary.undone_by.empty() &&
                     TRY(Exists(store_, PlanPath(id))) &&
                     TRY(Exists(store_, ImagePath(id))) &&
                     TRY(Exists(store_, ManifestPath(id)));
  return summary;
}

Status TransactionHistory::Write(const TransactionSummary& summary) const {
  return ReplaceFile(store_, PathOf(summary.id),
                     AsText(EncodeSummary(summary)));
}

Result<std::vector<std::string>> TransactionHistory::PlanIds() const {
  std::vector<std::string> ids;
  for (const std::string& name : TRY(ListNames(store_, kHistoryDirectory))) {
    const auto [id, suffix] = SplitHistoryName(name);
    if (suffix == kPlanSuffix) ids.emplace_back(id);
  }
  return ids;
}

Result<std::string> TransactionHistory::ReadPlan(const std::string& id) const {
  return ReadWholeFile(store_, PlanPath(id), kPlanMax);
}

Result<std::string> TransactionHistory::ReadImage(const std::string& id) const {
  return ReadWholeFile(store_, ImagePath(id), kPlanMax);
}

Result<std::string> TransactionHistory::ReadManifest(
    const std::string& id) const {
  return ReadWholeFile(store_, ManifestPath(id), kPlanMax);
}

Status TransactionHistory::WriteManifest(const std::string& id,
                                         std::string_view manifest) const {
  return ReplaceFile(store_, ManifestPath(id), manifest);
}

Status TransactionHistory::WriteImage(const std::string& id,
                                      std::string_view image) const {
  return PutFile(store_, ImagePath(id), image);
}

Status TransactionHistory::DropPlan(const std::string& id) const {
  // By its name one tells what a crash leaves of this from damage.
  const std::string plan = PlanPath(id);
  const std::string dropped = PathOf(id) + std::string(kDroppedPlanSuffix);
  CrashPoint();
  if (auto done = RenameBelow(store_, plan, dropped);
      !done && done.error().code != ENOENT) {
    return done;
  }
  TRY(RemoveTree(store_, ImagePath(id)));
  TRY(RemoveTree(store_, ManifestPath(id)));
  return RemoveTree(store_, dropped);
}

Status TransactionHistory::Drop(const std::string& id) const {
  TRY(DropPlan(id));
  return RemoveTree(store_, PathOf(id));
}

Status TransactionHistory::Retract(const std::string& id) const {
  TRY(Drop(id));
  return SyncDirectory(store_, kHistoryDirectory);
}

Result<std::vector<std::string>> TransactionHistory::Orphans() const {
  std::vector<std::string> orphans;
  for (const std::string& name : TRY(ListNames(store_, kHistoryDirectory))) {
    const std::string id(SplitHistoryName(name).first);
    if (!IsTransactionId(id) || TRY(Has(id))) continue;
    if (orphans.empty() || orphans.back() != id) orphans.push_back(id);
  }
  return orphans;
}

std::pair<std::string_view, std::string_view> SplitHistoryName(
    std::string_view name) {
  const size_t dot = std::min(name.find('.'), name.size());
  return {name.substr(0, dot), name.substr(dot)};
}

}  // namespace txfs

#include "fs/commit/committer.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <ranges>

#include "fs/vault/vault_manifest.h"
#include "fs/vault/vault_sums.h"
#include "journal/frame.h"
#include "journal/support/file.h"
#include "journal/support/io.h"

namespace txfs {
namespace {

constexpr FileFrame kCommitFrame = {
    .magic = "TXFSPLN\n", .version = 2, .what = "commit plan"};
/// In which attributes do not name their object: what undoes such a plan cannot
/// do so either.
constexpr FileFrame kFirstFrame = {
    .magic = kCommitFrame.magic, .version = 1, .what = kCommitFrame.what};

/// The image and the manifest of what is no large tree are not larger than the
/// plan by more than that.
constexpr uint64_t kSpareBytes = 64 << 10;

/// How long the sums of a vault wait for a commit to end, milliseconds.
constexpr int kSumLockMs = 1000;

/// `error` with the file it is about.
std::unexpected<Error> In(const std::string& file, Error error) {
  error.message = file + ": " + error.message;
  return std::unexpected(std::move(error));
}

/// A plan is carried out with the rights of the user who runs this, so it has
/// to be that user's. None there is as good as one that is.
Status CheckOwner(const Store& store, const std::string& path) {
  const auto st = StatBelow(store.dir(), path);
  if (!st && st.error().code == ENOENT) return {};
  if (!st) return std::unexpected(st.error());
  if (st->st_uid == ::geteuid()) return {};
  return Fail(EACCES,
              store.display_path() + "/" + path + " belongs to another user",
              "no commit of this user wrote it: move it elsewhere");
}

bool IsUndo(const CommitRecord& record) {
  return record.summary.kind == TransactionKind::kUndo;
}

/// Version 1 did not say whose attributes a step sets.
bool NamesObjects(const CommitSteps& steps) {
  return std::ranges::all_of(
      steps, [](const CommitStep& step) { return step.ino != 0; });
}

using Records = std::map<std::string, TransactionSummary>;

/// Whether nothing of an ended transaction is in the base, or will be again.
bool LeftNothing(const TransactionSummary& transaction,
                 const Records& records) {
  if (transaction.state == TransactionState::kDiscarded) return true;
  bool undone = false;
  const TransactionSummary* newest = &transaction;
  // Records that lead in a circle are damaged.
  size_t left = records.size();
  while (!newest->undone_by.empty()) {
    const auto undo = records.find(newest->undone_by);
    if (undo == records.end() || left-- == 0) return false;
    newest = &undo->second;
    undone = !undone;
  }
  if (newest->undoable) return false;
  if (transaction.kind != TransactionKind::kUndo) return undone;
  return !records.contains(transaction.of);
}

}  // namespace

bool TakesBack(const TransactionSummary& ended,
               const std::vector<TransactionSummary>& list) {
  bool takes_back = false;
  const TransactionSummary* at = &ended;
  // Records that lead in a circle are damaged.
  for (size_t left = list.size(); at->kind == TransactionKind::kUndo; --left) {
    takes_back = !takes_back;
    const auto undone =
        std::ranges::find(list, at->of, &TransactionSummary::id);
    if (undone == list.end() || left == 0) break;
    at = &*undone;
  }
  return takes_back;
}

namespace {

/// Whether it may be one that was written.
bool MakesSense(const CommitRecord& record) {
  const TransactionKind kind = record.summary.kind;
  const bool settles = kind == TransactionKind::kPartial;
  return record.summary.state == TransactionState::kCommitted &&
         IsTransactionId(record.vault) &&
         record.settlement.empty() != settles &&
         (kind == TransactionKind::kUndo || !GainPrivileges(record.steps)) &&
         (!settles || DecodeChange(record.settlement));
}

}  // namespace

Bytes EncodeRecord(const CommitRecord& record) {
  Bytes bytes;
  Encoder out(bytes);
  out.PutString(AsText(EncodeSummary(record.summary)));
  out.PutString(record.vault);
  EncodeSteps(record.steps, out);
  out.PutString(AsText(record.settlement));
  out.Put(Raw(record.settles_at));
  return PutInFrame(NamesObjects(record.steps) ? kCommitFrame : kFirstFrame,
                    bytes);
}

Result<CommitRecord> DecodeRecord(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kCommitFrame, in)));
  CommitRecord record;
  const std::string_view summary = decoder.GetString();
  record.vault = decoder.GetString();
  record.steps = DecodeSteps(decoder);
  const ByteSpan settlement = AsBytes(decoder.GetString());
  record.settlement.assign(settlement.begin(), settlement.end());
  record.settles_at = Lsn{decoder.Get<uint64_t>()};
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kCommitFrame);
  if (VersionIn(kCommitFrame, in) > 1 && !NamesObjects(record.steps)) {
    return Damaged(kCommitFrame);
  }
  record.summary = TRY(DecodeSummary(AsBytes(summary)));
  if (!MakesSense(record)) return Damaged(kCommitFrame);
  return record;
}

Result<std::unique_ptr<CommitRecord>> ReadIntent(const Store& store) {
  std::unique_ptr<CommitRecord> none;
  if (!store.history().HasIntent()) return none;
  TRY(CheckOwner(store, "intent"));
  auto bytes = store.history().ReadIntent();
  if (!bytes && bytes.error().code == ENOENT) return none;
  const std::string text = TRY(std::move(bytes));
  auto record = DecodeRecord(AsBytes(text));
  if (!record) {
    return In(store.display_path() + "/intent", std::move(record).error());
  }
  return std::make_unique<CommitRecord>(std::move(*record));
}

Result<std::unique_ptr<CommitRecord>> Committer::Unfinished() const {
  auto record = TRY(ReadIntent(store_));
  // Whether who wrote it came to this is not known.
  if (record) TRY(SyncDirectory(store_.dir(), "."));
  return record;
}

Status Committer::CheckPermitted(const CommitRecord& record) const {
  TRY(CommitRunner::CheckHarmless(record.steps, IsUndo(record)));
  return CommitRunner(base_, {}).CheckPermitted(record.steps);
}

Status Committer::PassPointOfNoReturn(const CommitRecord& record) {
  const TransactionHistory& history = store_.history();
  const Bytes plan = EncodeRecord(record);
  auto written = history.MakeRoom(record.summary, plan.size() + kSpareBytes);
  if (written) written = history.WriteIntent(AsText(plan));
  if (written) return written;
  if (history.HasIntent()) return written;
  Error error = std::move(written).error();
  // What cannot be removed goes with the next garbage.
  std::ignore = history.DropRoom(record.summary);
  if (record.summary.kind == TransactionKind::kUndo && IsFull(error)) {
    error.message = "nothing was undone: " + error.message;
    error.hint = "make room in " + store_.display_path() + ", then undo again";
  }
  return std::unexpected(std::move(error));
}

Status Committer::CarryOut(const CommitRecord& record) {
  const Vault vault = TRY(vaults_.Open(record.vault));
  const bool is_undo = IsUndo(record);
  TRY(CommitRunner(base_, vault, progress_).Run(record.steps, is_undo));
  if (record.summary.kind == TransactionKind::kWhole) {
    // From here on they are files of the base and of nobody else.
    TRY(store_.GiveUpLinkedSegments(record.summary.id));
  }
  const CommitImage image = TRY(TakeImage(base_, record.steps, is_undo));
  TRY(store_.history().WriteImage(record.summary.id,
                                  AsText(EncodeImage(image))));
  const VaultManifest manifest = TRY(TakeManifest(vault));
  TRY(store_.history().WriteManifest(record.summary.id,
                                     AsText(EncodeManifest(manifest))));
  return store_.history().Write(record.summary);
}

Result<FileLock> Committer::Lock(int timeout_ms) const {
  auto lock = store_.history().LockCommits(timeout_ms);
  if (lock || lock.error().kind != ErrorKind::kBusy) return lock;
  return Fail(ErrorKind::kBusy, 0,
              "another commit of " + PathOfFd(base_.root()) +
                  " is in progress or stopped half-way",
              "try again when it has ended; `txfs list` shows its transaction");
}

std::unexpected<Error> Committer::HalfWay(const TransactionSummary& summary,
                                          Error error, GoesOn by) const {
  const std::string what = summary.kind == TransactionKind::kUndo
                               ? "undo of transaction " + summary.of
                               : "commit of " + PathOfFd(base_.root());
  error.message = what + " stopped half-way: " + error.message;
  if (error.hint.empty()) error.hint = "remove the cause";
  error.hint += by == GoesOn::kByCommit
                    ? ", then run `txfs commit` again to continue it"
                    : "; the next txfs command continues it";
  return std::unexpected(std::move(error));
}

Result<std::string> Committer::FinishUnfinished() {
  const std::unique_ptr<CommitRecord> record = TRY(Unfinished());
  if (!record) return "";
  auto finished = FinishDead(*record);
  if (!finished) {
    return HalfWay(record->summary, std::move(finished).error(),
                   GoesOn::kByAnyone);
  }
  return record->summary.id;
}

/// Whether all is done but that the intent is still there: the transaction goes
/// after everything else (Store::Tidy leaves it alone meanwhile).
Result<bool> Committer::IsOver(const CommitRecord& record) const {
  const std::string& id = record.summary.id;
  if (record.summary.kind != TransactionKind::kWhole) return false;
  if (!TRY(store_.history().Has(id))) return false;
  const auto transaction = store_.TransactionDir(id);
  return !transaction && transaction.error().code == ENOENT;
}

Status Committer::FinishDead(const CommitRecord& record) {
  // To repeat the steps could take back what others have done since.
  if (TRY(IsOver(record))) return Finish(record);
  TRY(CarryOut(record));
  if (record.summary.kind == TransactionKind::kPartial) {
    TRY(Settle(record));
  } else {
    TRY(store_.Retire(record.summary.id));
    // What became files of the base has names there, for the last time.
    std::ignore = store_.EmptyTrash();
    TRY(SyncDirectory(store_.dir(), "trash"));
  }
  return Finish(record);
}

Result<bool> Committer::IsSettled(Journal& journal,
                                  const CommitRecord& record) {
  bool found = false;
  TRY(journal.ReadLog(record.settles_at, [&](const LogEntry& entry) {
    found = entry.change.op == Op::kCommit &&
            entry.change.path == record.summary.id;
    return !found;
  }));
  return found;
}

Status Committer::Settle(const CommitRecord& record) {
  auto transaction =
      store_.Resume(record.summary.of, {.background_drain = false});
  // It was discarded in spite of it all.
  if (!transaction && transaction.error().code == ENOENT) return {};
  const OpenTransaction open = TRY(std::move(transaction));
  Journal& journal = *open.journal;
  if (!TRY(IsSettled(journal, record))) {
    const Change change = TRY(DecodeChange(record.settlement));
    TRY(journal.Settle(change));
  }
  return journal.Drain();
}

Status Committer::Finish(const CommitRecord& record) {
  const TransactionHistory& history = store_.history();
  if (record.summary.kind == TransactionKind::kUndo) {
    TransactionSummary undone = TRY(history.Read(record.summary.of));
    undone.undone_by = record.summary.id;
    TRY(history.Write(undone));
    TRY(history.DropPlan(undone.id));
  }
  TRY(history.FinishIntent(record.summary.id));
  // There is nothing that an undo would take back.
  if (record.steps.empty()) return history.DropPlan(record.summary.id);
  return {};
}

// --- undo ------------------------------------------------------------------

Result<CommitRecord> Committer::ReadRecord(const std::string& id) const {
  TRY(CheckOwner(store_, "history/" + id + ".plan"));
  const std::string text = TRY(store_.history().ReadPlan(id));
  auto record = DecodeRecord(AsBytes(text));
  if (record) return record;
  return In(store_.display_path() + "/history/" + id + ".plan",
            std::move(record).error());
}

Result<CommitImage> Committer::ReadImage(const std::string& id) const {
  const std::string text = TRY(store_.history().ReadImage(id));
  auto image = DecodeImage(AsBytes(text));
  if (image) return image;
  return In(store_.display_path() + "/history/" + id + ".image",
            std::move(image).error());
}

Result<bool> Committer::LeftSince(const TransactionSummary& commit,
                                  uint64_t ino, Timestamp ctime) const {
  const std::vector<TransactionSummary> list = TRY(store_.history().ReadAll());
  bool left = false;
  for (const TransactionSummary& later : list) {
    if (later.ended < commit.ended || later.id == commit.id) continue;
    const auto image = ReadImage(later.id);
    if (!image && image.error().code == ENOENT) continue;
    if (!image) return std::unexpected(image.error());
    left = left || std::ranges::any_of(*image, [&](const ImageEntry& entry) {
             return entry.ino == ino && entry.ctime == ctime;
           });
    // What it wrote in place is not what `commit` brought.
    const bool stands = later.undone_by.empty() && !TakesBack(later, list);
    if (stands && TRY(Patches(later.id, ino))) return false;
  }
  return left;
}

Result<bool> Committer::Patches(const std::string& id, uint64_t ino) const {
  const CommitRecord record = TRY(ReadRecord(id));
  return std::ranges::any_of(record.steps, [&](const CommitStep& step) {
    return step.kind == StepKind::kPatch && step.ino == ino;
  });
}

Result<std::string> Committer::ChooseUndoable(const std::string& wanted) const {
  const std::vector<TransactionSummary> list = TRY(store_.history().ReadAll());
  for (const TransactionSummary& newest : list | std::views::reverse) {
    // What an undo took back is not what "undo" means to take back next.
    if (newest.undoable && !TakesBack(newest, list) &&
        (wanted.empty() || newest.name == wanted) &&
        (newest.changes != 0 || !TRY(ReadRecord(newest.id)).steps.empty())) {
      return newest.id;
    }
  }
  if (wanted.empty()) {
    std::string hint = "`txfs list` shows the commits";
    for (const TransactionSummary& undo : list) {
      if (!undo.undoable || !TakesBack(undo, list)) continue;
      hint = "`txfs undo " + undo.id + "` brings the undone commit back";
    }
    return Fail(0, "there is no commit to undo", hint);
  }
  const TransactionSummary found = TRY(FindTransaction(list, wanted));
  if (found.undoable) return found.id;
  std::string reason = "its history is no longer kept";
  if (found.state != TransactionState::kCommitted) {
    reason = "it was " + std::string(StateName(found.state));
  } else if (!found.undone_by.empty()) {
    reason = "it was undone by " + found.undone_by;
  }
  return Fail(0, "transaction " + found.id + " cannot be undone: " + reason,
              "`txfs list` shows the commits that can");
}

Result<CommitRecord> Committer::PrepareUndo(const std::string& wanted,
                                            Timestamp now, UndoReport& report) {
  report.undone = TRY(ChooseUndoable(wanted));
  const CommitRecord undone = TRY(ReadRecord(report.undone));
  TRY(vaults_.Open(undone.vault));
  const CommitImage image = TRY(ReadImage(report.undone));
  report.changes = undone.summary.changes;
  report.conflicts =
      TRY(CompareImage(base_, image, [&](uint64_t ino, Timestamp ctime) {
        return LeftSince(undone.summary, ino, ctime);
      }));
  CommitRecord record;
  record.vault = undone.vault;
  record.steps = Inverse(undone.steps);
  TRY(KeepLaterTimes(base_, image, record.steps));
  record.summary = {.id = TRY(store_.ReserveId(now)),
                    .name = undone.summary.name,
                    .state = TransactionState::kCommitted,
                    .kind = TransactionKind::kUndo,
                    .created = now,
                    .ended = now,
                    .message = "undo of " + report.undone,
                    .author = CurrentUser(),
                    .changes = undone.summary.changes,
                    .of = report.undone};
  report.id = record.summary.id;
  return record;
}

/// What the vault lacks would be taken for done, and what was put there would
/// come to the base.
Status Committer::CheckVault(const CommitRecord& record) const {
  const std::string& undone = record.summary.of;
  const std::string bytes = TRY(store_.history().ReadManifest(undone));
  const auto manifest = DecodeManifest(AsBytes(bytes));
  if (!manifest) {
    return Fail(manifest.error().code,
                store_.display_path() + "/history/" + undone +
                    ".vault: " + manifest.error().message,
                "it cannot be undone; `txfs fsck` lists all damage");
  }
  const Vault vault = TRY(vaults_.Open(record.vault));
  const VaultDifferences differences = TRY(CompareManifest(vault, *manifest));
  if (differences.is_copy) {
    return Fail(0,
                "transaction " + undone +
                    " cannot be undone here: the store was copied or restored, "
                    "so its inode numbers changed",
                "undo it where it was committed; `txfs show " + undone +
                    "` shows its changes");
  }
  if (differences.list.empty()) return {};
  return Fail(0,
              "the files that transaction " + undone +
                  " removed or replaced are damaged: " +
                  differences.list.front() + " in vault " + record.vault,
              "it cannot be undone; `txfs fsck` lists all damage");
}

Result<UndoReport> Committer::Undo(const std::string& wanted, Timestamp now,
                                   const BaseWork& change_base) {
  UndoReport report;
  const CommitRecord record = TRY(PrepareUndo(wanted, now, report));
  // In a copy of the store everything is another object.
  TRY(CheckVault(record));
  if (!report.conflicts.empty()) return report;
  TRY(CheckPermitted(record));
  bool passed = false;
  auto done = change_base([&]() -> Status {
    TRY(PassPointOfNoReturn(record));
    passed = true;
    TRY(CarryOut(record));
    return Finish(record);
  });
  if (!done && store_.history().HasIntent()) {
    return HalfWay(record.summary, std::move(done).error(), GoesOn::kByAnyone);
  }
  // Without an intent it is done, whatever the last syncs said.
  if (!passed) TRY(std::move(done));
  return report;
}

// --- sums of content -------------------------------------------------------

Status Committer::SumVaults(const std::function<bool()>& stop) {
  const std::vector<TransactionSummary> list =
      TRY(store_.history().ReadWithPlans());
  for (const TransactionSummary& summary : list | std::views::reverse) {
    if (stop()) return {};
    // One that is not to be had now is no reason to leave out the others.
    if (summary.undoable) std::ignore = SumVault(summary, stop);
  }
  return {};
}

/// Of what is freed or undone meanwhile nothing is written: with the lock held
/// it is looked at again.
Status Committer::SumVault(const TransactionSummary& commit,
                           const std::function<bool()>& stop) {
  std::string id = commit.id;
  if (commit.kind == TransactionKind::kUndo) id = TRY(ReadRecord(id)).vault;
  const Vault vault = TRY(vaults_.Open(id));
  if (HasCompleteSums(vault, commit.id)) return {};
  const std::string bytes = TRY(store_.history().ReadManifest(commit.id));
  const VaultManifest manifest = TRY(DecodeManifest(AsBytes(bytes)));
  const VaultSums before = TRY(ReadSums(vault));
  NewSums made = SumFiles(vault, MatchSums(manifest, before).missing, stop);
  if (!made.complete && made.sums.empty()) return {};
  const FileLock lock = TRY(Lock(kSumLockMs));
  const bool is_kept = !store_.history().HasIntent() &&
                       TRY(store_.history().Read(commit.id)).undoable;
  if (!is_kept) return {};
  // Another daemon may have been at it, too.
  VaultSums sums = TRY(ReadSums(vault));
  AddSums(sums, std::move(made.sums));
  if (made.complete || MatchSums(manifest, sums).missing.empty()) {
    sums.complete_for = commit.id;
  }
  return ReplaceSums(vault, sums);
}

// --- garbage ---------------------------------------------------------------

Result<GcReport> Committer::CollectGarbage(const Retention& retention) {
  const TransactionHistory& history = store_.history();
  // What has no plan yet would be taken for what is not kept.
  if (history.HasIntent()) return GcReport();
  TRY(history.DropUnfinished(
      [&](const std::string& id) { return store_.IsOpen(id); }));
  GcReport report;
  std::vector<std::string> kept;  // vaults
  uint64_t bytes = 0;
  const std::vector<TransactionSummary> list = TRY(history.ReadWithPlans());
  for (const TransactionSummary& summary : list | std::views::reverse) {
    const std::string& id = summary.id;
    if (!summary.undoable) {
      TRY(history.DropPlan(id));
      continue;
    }
    const CommitRecord record = TRY(ReadRecord(id));
    bytes += TRY(vaults_.Bytes(record.vault));
    if (kept.size() < retention.commits && bytes <= retention.bytes) {
      kept.push_back(record.vault);
      continue;
    }
    // Only the plan tells where they are.
    TRY(RemoveBeside(record.steps));
    TRY(history.DropPlan(id));
    ++report.commits;
  }
  // Of what has lost its record, until somebody asks for its end.
  for (const std::string& id : TRY(history.Orphans())) {
    const auto record = ReadRecord(id);
    if (record) kept.push_back(record->vault);
  }
  // A plan must not come back without its vault.
  TRY(SyncDirectory(store_.dir(), "history"));
  report.bytes = TRY(RemoveUnreferenced(kept));
  return report;
}

Status Committer::RemoveBeside(const CommitSteps& steps) const {
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!IsBeside(VaultSlot::kTaken, steps[i].to)) continue;
    TRY(vaults_.RemoveBeside(PlaceAfter(steps, i).path, steps[i].ino));
  }
  return {};
}

Result<GcReport> Committer::FreeSpace(const Retention& retention,
                                      int timeout_ms) {
  const uint64_t trash = TRY(BytesOnDisk(store_.dir(), "trash"));
  TRY(store_.EmptyTrash());
  const uint64_t left = TRY(BytesOnDisk(store_.dir(), "trash"));
  const FileLock lock = TRY(Lock(timeout_ms));
  if (store_.history().HasIntent()) {
    return Fail(ErrorKind::kBusy, 0,
                "a commit of " + PathOfFd(base_.root()) + " stopped half-way",
                "run the command again: it finishes the commit first");
  }
  for (const std::string& id : TRY(store_.history().Orphans())) {
    TRY(store_.history().DropPlan(id));
  }
  GcReport report = TRY(CollectGarbage(retention));
  report.bytes += trash - std::min(trash, left);
  TRY(Forget(report));
  return report;
}

Status Committer::Forget(GcReport& report) {
  const TransactionHistory& history = store_.history();
  Records records;
  for (const std::string& id : TRY(history.Ids())) {
    records.emplace(id, TRY(history.Read(id)));
  }
  // An undo goes with what it undid: of an older id.
  for (auto at = records.begin(); at != records.end();) {
    const std::string& id = at->first;
    // One that is about to end still needs its record to have ended.
    const auto open = store_.TransactionDir(id);
    const bool is_open = open || open.error().code != ENOENT;
    if (is_open || !LeftNothing(at->second, records)) {
      ++at;
      continue;
    }
    report.bytes += TRY(BytesOnDisk(store_.dir(), "history/" + id));
    TRY(history.Drop(id));
    ++report.forgotten;
    at = records.erase(at);
  }
  return {};
}

Result<uint64_t> Committer::RemoveUnreferenced(
    const std::vector<std::string>& kept) {
  const auto unfinished = TRY(Unfinished());
  uint64_t bytes = 0;
  for (const std::string& vault : TRY(vaults_.Ids())) {
    const bool wanted = std::ranges::count(kept, vault) != 0 ||
                        (unfinished && unfinished->vault == vault);
    if (wanted) continue;
    bytes += TRY(vaults_.Bytes(vault));
    TRY(vaults_.Remove(vault));
  }
  return bytes;
}

std::string CurrentUser() {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) ==
          0 &&
      found != nullptr) {
    return found->pw_name;
  }
  return std::to_string(::geteuid());
}

}  // namespace txfs

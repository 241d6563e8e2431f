#include "journal/store.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "journal/support/filesystem_kind.h"
#include "journal/support/io.h"

namespace txfs {
namespace {

constexpr uint32_t kStoreVersion = 1;
constexpr std::string_view kFormatPrefix = "txfs store ";
constexpr uint64_t kIdMask = (uint64_t{1} << 48) - 1;
constexpr std::string_view kNewSuffix = ".new";
constexpr const char* kReserved = "reserved";
constexpr const char* kRuns = "runs";
constexpr int kLockTimeoutMs = 10'000;
constexpr int kResumeTimeoutMs = 3'000;

constexpr std::array<std::string_view, 22> kEntries = {
    ".gitignore",      ".gitignore.new", "FORMAT",      "FORMAT.new",
    "workspace",       "workspace.new",  "lock",        "intent",
    "intent.new",      "history",        "txn",         "vault",
    "reserved",        "reserved.new",   "commit.lock", "blank.lock",
    "blank",           "blank.part",     "policy.toml", "vault-place",
    "vault-place.new", "adopt",
};

constexpr uint64_t kPlenty = 1 << 30;
const std::string kBlank = "blank";
const std::string kBlankPart = "blank.part";

std::string IdOf(uint64_t number) {
  char text[kTransactionIdDigits + 1];
  std::snprintf(text, sizeof text, "%012llx",
                static_cast<unsigned long long>(number & kIdMask));
  return text;
}

std::string TxnPath(const std::string& id) { return "txn/" + id; }
std::string SummaryPath(const std::string& id) {
  return TxnPath(id) + "/summary";
}
std::string DaemonPath(const std::string& id) {
  return TxnPath(id) + "/daemon.json";
}

/// Where there is not, everything is for those who have something to store.
bool HasPlentyOfRoom(int dir) {
  struct statvfs st{};
  return ::fstatvfs(dir, &st) == 0 && st.f_bavail >= kPlenty / st.f_frsize;
}

/// Of a commit that is over, or never came to be, no id need be reserved.
Status DropReserved(int dir, const TransactionHistory& history) {
  const std::string unfinished = kReserved + std::string(kNewSuffix);
  const bool reserved =
      TRY(Exists(dir, kReserved)) || TRY(Exists(dir, unfinished));
  if (!reserved || history.HasIntent()) return {};
  const auto lock = history.LockCommits(0);
  if (!lock || history.HasIntent()) return {};
  TRY(RemoveTree(dir, unfinished));
  return RemoveTree(dir, kReserved);
}

Status WriteSummary(int dir, const TransactionSummary& summary) {
  return ReplaceFile(dir, "summary", AsText(EncodeSummary(summary)));
}

/// The runs of the open transaction `id`; none if they cannot be read, which
/// power loss may be the reason for.
std::vector<RunRecord> ReadRuns(int store, const std::string& id) {
  const auto dir = OpenDirectoryBelow(store, TxnPath(id));
  if (!dir) return {};
  const auto bytes = ReadWholeFile(dir->get(), kRuns, 1 << 20);
  auto runs = bytes ? DecodeRuns(AsBytes(*bytes)) : std::vector<RunRecord>();
  if (!runs) return {};
  const auto runs_on = [](const RunRecord& run) {
    return run.outcome == RunOutcome::kRunning;
  };
  // Of a daemon that has died: one that lives has the transaction.
  if (std::ranges::any_of(*runs, runs_on) &&
      FileLock::Take(dir->get(), "lock", 0)) {
    for (RunRecord& run : *runs) {
      if (runs_on(run)) run.outcome = RunOutcome::kInterrupted;
    }
  }
  return *std::move(runs);
}

/// The same where nobody looks yet.
Status WriteFirstSummary(int dir, const TransactionSummary& summary) {
  const UniqueFd fd =
      TRY(OpenOwnFileBelow(dir, "summary", O_WRONLY | O_CREAT | O_TRUNC, 0600));
  TRY(WriteFully(fd.get(), 0, EncodeSummary(summary)));
  if (SyncOfStore(fd.get()) != 0) return Fail(errno, "sync summary");
  return {};
}

}  // namespace

Error Store::Explain(Error error) const {
  if (!error.hint.empty()) return error;
  switch (error.code) {
    case EROFS:
      error.message =
          "store " + display_path_ + " is on a read-only filesystem";
      error.hint =
          "make it writable; a workspace that has no store yet can have one "
          "elsewhere: --store DIR";
      break;
    case ENOSPC:
    case EDQUOT:
      error.message = "store " + display_path_ + ": " + error.message;
      error.hint =
          "make room there, or choose another directory with --store DIR";
      break;
    case EACCES:
    case EPERM:
      error.message = "store " + display_path_ + ": " + error.message;
      error.hint =
          "run as its owner, or make it yours: sudo chown -R \"$USER\" " +
          display_path_;
      break;
    case ENOTDIR:
      error.message = "store " + display_path_ + ": " + error.message;
      error.hint = "name a directory with --store DIR";
      break;
    default:
      error.message = "store " + display_path_ + ": " + error.message;
      break;
  }
  return error;
}

Result<UniqueFd> Store::OpenDirectory(int dir, const std::string& path,
                                      const std::string& display_path) {
  // The user may have named it by a symbolic link.
  auto fd = dir == AT_FDCWD ? OpenAt(dir, path, O_RDONLY | O_DIRECTORY)
                            : OpenDirectoryBelow(dir, path);
  if (fd) return fd;
  return std::unexpected(
      Store(UniqueFd(), display_path).Explain(std::move(fd).error()));
}

Status Store::CheckFilesystem() {
  struct statfs st{};
  if (::fstatfs(dir_.get(), &st) != 0) return Fail(errno, "statfs");
  if (IsServedElsewhere(st)) {
    return Fail(ENOLCK,
                "store " + display_path_ +
                    " is on a network or FUSE filesystem, where LMDB cannot "
                    "lock",
                "choose a local directory with --store DIR");
  }
  if ((st.f_flags & ST_RDONLY) != 0) return Fail(EROFS, "open");
  return {};
}

Status Store::CheckFormat() {
  const std::string text = TRY(ReadWholeFile(dir_.get(), "FORMAT", 4096));
  uint32_t version = 0;
  const std::string_view rest = std::string_view(text).substr(
      std::min(kFormatPrefix.size(), text.size()));
  const auto [end, error] =
      std::from_chars(rest.data(), rest.data() + rest.size(), version);
  if (!text.starts_with(kFormatPrefix) || error != std::errc()) {
    return Fail(EBADMSG, "store " + display_path_ + ": FORMAT is damaged",
                "restore its only line, \"" + std::string(kFormatPrefix) +
                    std::to_string(kStoreVersion) +
                    "\", or move the store elsewhere to begin a new one");
  }
  if (version <= kStoreVersion) return {};
  return Fail(EPROTONOSUPPORT,
              "store " + display_path_ + " has version " +
                  std::to_string(version) + ", this program knows " +
                  std::to_string(kStoreVersion),
              "use the newer txfs that made it");
}

// FORMAT comes last: without it the layout is not complete.
Status Store::MakeLayout(const std::string& workspace) {
  for (const std::string& name : TRY(ListNames(dir_.get(), "."))) {
    if (std::ranges::count(kEntries, name) == 0 && name != "trash") {
      return Fail(ENOTEMPTY, display_path_ + " is not a store, and not empty",
                  "choose an empty directory with --store DIR");
    }
  }
  if (::fchmod(dir_.get(), 0700) != 0) return Fail(errno, "chmod");
  const FileLock lock = TRY(Lock());
  if (TRY(Exists(dir(), "FORMAT"))) return {};  // somebody else made it
  for (const char* name : {"txn", "history", "trash"}) {
    TRY(MakeDirectoryAt(dir_.get(), name, 0700));
  }
  TRY(ReplaceFile(dir_.get(), ".gitignore", "*\n"));
  TRY(ReplaceFile(dir_.get(), "workspace", workspace));
  return ReplaceFile(
      dir_.get(), "FORMAT",
      std::string(kFormatPrefix) + std::to_string(kStoreVersion) + "\n");
}

bool Store::IsAt(const std::string& path) {
  return ::access((path + "/FORMAT").c_str(), F_OK) == 0;
}

Result<std::unique_ptr<Store>> Store::Open(UniqueFd dir,
                                           std::string display_path,
                                           const std::string& workspace) {
  std::unique_ptr<Store> store(
      new Store(std::move(dir), std::move(display_path)));
  const auto open = [&]() -> Status {
    TRY(store->CheckFilesystem());
    if (!TRY(Exists(store->dir(), "FORMAT"))) {
      TRY(store->MakeLayout(workspace));
    }
    return store->CheckFormat();
  };
  Status opened = open();
  if (opened) return store;
  return std::unexpected(store->Explain(std::move(opened).error()));
}

Result<FileLock> Store::Lock() {
  return FileLock::Take(dir_.get(), "lock", kLockTimeoutMs);
}

Result<bool> Store::HasEnded(const std::string& id) { return history_.Has(id); }

Status Store::ThrowAway(const std::string& name) {
  // An older piece of trash may have the name.
  std::string target = "trash/" + name;
  for (int i = 1; TRY(Exists(dir_.get(), target)); ++i) {
    target = "trash/" + name + "." + std::to_string(i);
  }
  const std::string source = TxnPath(name);
  CrashPoint();
  auto moved = RenameBelow(dir_.get(), source, target);
  if (!moved) moved.error().message += " to the trash";
  return moved;
}

Status Store::Tidy() {
  for (const std::string& name : TRY(ListNames(dir_.get(), "txn"))) {
    const bool unfinished = name.ends_with(kNewSuffix);
    // That it is gone tells who finds an intent that all steps were done; so it
    // goes only after them, by who does them. In this order: the intent goes
    // after the history has it.
    const bool ended =
        IsTransactionId(name) && TRY(HasEnded(name)) && !history_.HasIntent();
    if (unfinished || ended) TRY(ThrowAway(name));
  }
  return {};
}

Result<std::string> Store::NewId(Timestamp now) {
  uint64_t number =
      static_cast<uint64_t>(now.sec) * 1000 + now.nsec / 1'000'000;
  auto reserved = ReadWholeFile(dir_.get(), kReserved);
  if (!reserved && reserved.error().code != ENOENT) {
    return std::unexpected(std::move(reserved).error());
  }
  for (;; ++number) {
    std::string id = IdOf(number);
    if (reserved && id == *reserved) continue;
    if (!TRY(IsOpen(id)) && !TRY(HasEnded(id))) return id;
  }
}

Result<std::string> Store::ReserveId(Timestamp now) {
  const FileLock lock = TRY(Lock());
  std::string id = TRY(NewId(now));
  TRY(ReplaceFile(dir_.get(), kReserved, id));
  return id;
}

Result<OpenTransaction> Store::Build(const TransactionSummary& summary,
                                     const JournalOptions& options) {
  OpenTransaction built = TRY(BuildNew(summary, options));
  TRY(Publish(summary.id));
  return built;
}

Status Store::Publish(const std::string& id) {
  const std::string path = TxnPath(id) + std::string(kNewSuffix);
  CrashPoint();
  TRY(RenameBelow(dir_.get(), path, TxnPath(id)));
  return SyncDirectory(dir_.get(), "txn");
}

Result<OpenTransaction> Store::BuildNew(const TransactionSummary& summary,
                                        const JournalOptions& options) {
  const std::string path = TxnPath(summary.id) + std::string(kNewSuffix);
  const bool blank = RenameBelow(dir_.get(), kBlank, path).has_value();
  if (blank) {
    // Or after power loss it might be there, too, under its old name.
    TRY(SyncDirectory(dir_.get(), "."));
    auto built = BuildIn(path, summary, [&](UniqueFd dir) {
      return Journal::OpenUnused(std::move(dir), options);
    });
    if (built || IsFull(built.error())) return built;
    // It may be damaged, or older than this program.
    TRY(RemoveTree(dir_.get(), path));
  }
  TRY(MakeDirectoryAt(dir_.get(), path, 0700));
  return BuildIn(path, summary, [&](UniqueFd dir) {
    return Journal::Create(std::move(dir), options);
  });
}

Result<OpenTransaction> Store::BuildIn(const std::string& path,
                                       const TransactionSummary& summary,
                                       const OpenJournal& open_journal) {
  UniqueFd dir = TRY(OpenDirectoryBelow(dir_.get(), path));
  FileLock lock = TRY(FileLock::Take(dir.get(), "lock", 0));
  TRY(WriteFirstSummary(dir.get(), summary));
  std::unique_ptr<Journal> journal = TRY(open_journal(std::move(dir)));
  return OpenTransaction{summary.id, std::move(lock), std::move(journal)};
}

Status Store::MakeBlank(const JournalOptions& options) {
  auto lock = FileLock::Take(dir_.get(), "blank.lock", 0);
  if (!lock && lock.error().kind == ErrorKind::kBusy) return {};
  if (!lock) return std::unexpected(std::move(lock).error());
  if (TRY(Exists(dir_.get(), kBlank)) || !HasPlentyOfRoom(dir_.get())) {
    return {};
  }
  // Of one who died.
  TRY(RemoveTree(dir_.get(), kBlankPart));
  TRY(MakeDirectoryAt(dir_.get(), kBlankPart, 0700));
  UniqueFd dir = TRY(OpenDirectoryBelow(dir_.get(), kBlankPart));
  // Files whose names have to be durable by then.
  for (const char* name : {"lock", "summary"}) {
    TRY(OpenOwnFileBelow(dir.get(), name, O_WRONLY | O_CREAT, 0600));
  }
  auto journal = Journal::Create(std::move(dir), options);
  if (!journal) {
    std::ignore = RemoveTree(dir_.get(), kBlankPart);
    return std::unexpected(std::move(journal).error());
  }
  // The transaction that it becomes sets its own aside.
  (*journal)->GiveUpReserve();
  (*journal)->Forget();
  journal->reset();
  CrashPoint();
  return RenameBelow(dir_.get(), kBlankPart, kBlank);
}

Result<uint64_t> Store::DropBlank() {
  const FileLock store_lock = TRY(Lock());
  auto lock = FileLock::Take(dir_.get(), "blank.lock", 0);
  if (!lock && lock.error().kind == ErrorKind::kBusy) return 0;
  if (!lock) return std::unexpected(std::move(lock).error());
  uint64_t bytes = 0;
  for (const std::string& path : {kBlank, kBlankPart}) {
    bytes += TRY(BytesOnDisk(dir_.get(), path));
    TRY(RemoveTree(dir_.get(), path));
  }
  return bytes;
}

Result<OpenTransaction> Store::Begin(const std::string& name, Timestamp now,
                                     const JournalOptions& options) {
  const auto begin = [&]() -> Result<OpenTransaction> {
    const FileLock lock = TRY(Lock());
    TRY(Tidy());
    for (const TransactionSummary& other : TRY(ListOpen())) {
      if (other.name == name) {
        return Fail(EEXIST,
                    "transaction " + other.id +
                        (name.empty() ? "" : " \"" + name + "\"") +
                        " is open already",
                    "`txfs commit` or `txfs discard` ends it");
      }
    }
    TransactionSummary summary;
    summary.id = TRY(NewId(now));
    summary.name = name;
    summary.created = now;
    auto built = Build(summary, options);
    // What is left of a failure goes at the next Tidy, if not now.
    if (!built) {
      [[maybe_unused]] const Status removed =
          RemoveTree(dir_.get(), TxnPath(summary.id) + std::string(kNewSuffix));
    }
    return built;
  };
  auto begun = begin();
  if (begun) return begun;
  return std::unexpected(Explain(std::move(begun).error()));
}

Status Store::DropFollowers(const TransactionSummary& old) {
  for (const std::string& id : TRY(OpenIds())) {
    if (id == old.id) continue;
    const auto other = ReadSummary(dir_.get(), SummaryPath(id), id);
    if (!other || other->name != old.name) continue;
    // Nobody has it, and nothing was done in it; else it is somebody's, who
    // took `old` to have ended.
    const UniqueFd dir = TRY(TransactionDir(id));
    if (!FileLock::Take(dir.get(), "lock", 0)) continue;
    auto open = Resume(id, {.background_drain = false});
    if (!open) continue;
    const bool used = Raw(open->journal->last_lsn()) != 0;
    if (!used) open->journal->Forget();
    open->journal.reset();
    if (!used) TRY(ThrowAway(id));
  }
  return {};
}

Result<PreparedTransaction> Store::Prepare(const TransactionSummary& old,
                                           Timestamp now,
                                           const JournalOptions& options) {
  const auto prepare = [&]() -> Result<PreparedTransaction> {
    FileLock lock = TRY(Lock());
    TRY(Tidy());
    TRY(DropFollowers(old));
    TransactionSummary summary;
    summary.id = TRY(NewId(now));
    summary.name = old.name;
    summary.created = now;
    OpenTransaction next = TRY(BuildNew(summary, options));
    return PreparedTransaction{std::move(lock), std::move(next)};
  };
  auto prepared = prepare();
  if (prepared) return prepared;
  return std::unexpected(Explain(std::move(prepared).error()));
}

Status Store::GiveUpLinkedSegments(const std::string& id) {
  auto dir = TransactionDir(id);
  if (!dir && dir.error().code == ENOENT) return {};
  return Journal::GiveUpLinked(TRY(std::move(dir)).get());
}

Status Store::Retire(const std::string& id) {
  const FileLock lock = TRY(Lock());
  if (!TRY(IsOpen(id))) return {};
  return ThrowAway(id);
}

Result<OpenTransaction> Store::Succeed(const std::string& old,
                                       PreparedTransaction prepared) {
  if (auto published = Publish(prepared.next.id); !published) {
    Cancel(std::move(prepared));
    return std::unexpected(std::move(published).error());
  }
  // It has ended whether it can be moved or not; the next Tidy tries again.
  std::ignore = ThrowAway(old);
  return std::move(prepared.next);
}

void Store::Cancel(PreparedTransaction prepared) {
  prepared.next.journal->Forget();
  prepared.next.journal.reset();
  // What cannot be removed now goes at the next Tidy.
  const std::string& id = prepared.next.id;
  std::ignore = RemoveTree(dir_.get(), TxnPath(id) + std::string(kNewSuffix));
  std::ignore = ThrowAway(id);  // if it was published
}

Status Store::EndWithoutRoom(const TransactionSummary& ended) {
  const FileLock lock = TRY(Lock());
  // A record that cannot be synced counts all the same, if it is there.
  const bool recorded =
      history_.Write(ended) || history_.Has(ended.id).value_or(false);
  if (!recorded) std::ignore = history_.DropRoom(ended);
  const Status thrown = ThrowAway(ended.id);
  if (!recorded) TRY(thrown);
  // Or power loss would bring back what is deleted next.
  std::ignore = SyncDirectory(dir_.get(), "txn");
  std::ignore = SyncDirectory(dir_.get(), "trash");
  return {};
}

void Store::FreeEnded(const TransactionSummary& ended) {
  std::ignore = EmptyTrash();
  if (!history_.Has(ended.id).value_or(true)) {
    std::ignore = history_.Write(ended);
  }
}

Result<FileLock> Store::LockTransaction(const std::string& id) {
  const UniqueFd dir = TRY(TransactionDir(id));
  return LockIn(dir.get(), id);
}

Result<FileLock> Store::LockIn(int dir, const std::string& id) {
  if (TRY(HasEnded(id))) return Fail(ENOENT, "open transaction " + id);
  // A daemon whose mount has just gone may still be closing its journal.
  auto lock = FileLock::Take(dir, "lock", kResumeTimeoutMs);
  if (!lock && lock.error().kind == ErrorKind::kBusy) {
    const std::string holder = LockHolder(dir, "lock");
    return Fail(ErrorKind::kBusy, EWOULDBLOCK,
                "transaction " + id + " is in use" +
                    (holder.empty() ? "" : " by process " + holder),
                "run `txfs umount`; if the transaction is not mounted, end the "
                "programs that still use it, or that process: acknowledged "
                "changes are not lost");
  }
  if (!lock) return std::unexpected(Explain(std::move(lock).error()));
  return lock;
}

Result<OpenTransaction> Store::Resume(const std::string& id,
                                      const JournalOptions& options) {
  UniqueFd dir = TRY(TransactionDir(id));
  FileLock lock = TRY(LockIn(dir.get(), id));
  auto journal = Journal::Open(std::move(dir), options);
  if (!journal) return std::unexpected(Explain(std::move(journal).error()));
  return OpenTransaction{id, std::move(lock), std::move(*journal)};
}

Result<bool> Store::IsOpen(const std::string& id) const {
  return Exists(dir_.get(), TxnPath(id));
}

Result<std::vector<std::string>> Store::OpenIds() {
  std::vector<std::string> ids;
  for (std::string& name : TRY(ListNames(dir_.get(), "txn"))) {
    if (IsTransactionId(name) && !TRY(HasEnded(name)))
      ids.push_back(std::move(name));
  }
  return ids;
}

Status Store::Drop(const std::string& id) {
  const FileLock lock = TRY(Lock());
  return ThrowAway(id);
}

// Without a sync, which would take longer than all else of a short run.
Status Store::WriteRuns(const std::string& id,
                        const std::vector<RunRecord>& runs) {
  const UniqueFd dir = TRY(TransactionDir(id));
  const std::string made = kRuns + std::string(kNewSuffix);
  TRY(RemoveTree(dir.get(), made));
  const UniqueFd fd =
      TRY(OpenOwnFileBelow(dir.get(), made, O_WRONLY | O_CREAT | O_EXCL, 0600));
  TRY(WriteFully(fd.get(), 0, EncodeRuns(runs)));
  return RenameBelow(dir.get(), made, kRuns);
}

Status Store::UpdateSummary(const TransactionSummary& summary) {
  const UniqueFd dir = TRY(TransactionDir(summary.id));
  TransactionSummary stored = summary;
  stored.runs.clear();  // they have a file of their own
  return WriteSummary(dir.get(), stored);
}

Result<std::vector<TransactionSummary>> Store::ListOpen() {
  std::vector<TransactionSummary> list;
  for (const std::string& id : TRY(OpenIds())) {
    auto summary = ReadSummary(dir_.get(), SummaryPath(id), id);
    // It may have ended since its name was read.
    if (!summary && summary.error().code == ENOENT) continue;
    if (!summary) return std::unexpected(Explain(std::move(summary).error()));
    summary->runs = ReadRuns(dir_.get(), id);
    list.push_back(std::move(*summary));
  }
  return list;
}

Result<std::vector<TransactionSummary>> Store::List() {
  std::vector<TransactionSummary> list = TRY(ListOpen());
  for (const std::string& id : TRY(history_.Ids())) {
    auto ended = history_.Read(id);
    // Somebody may be freeing it.
    if (!ended && ended.error().code == ENOENT) continue;
    if (!ended) return std::unexpected(Explain(std::move(ended).error()));
    std::erase_if(list, [&](const auto& open) { return open.id == id; });
    list.push_back(std::move(*ended));
  }
  std::ranges::sort(list, {}, &TransactionSummary::id);
  return list;
}

Status Store::EmptyTrash() {
  // Without the lock there is somebody who tidies up himself.
  if (const auto lock = FileLock::Take(dir_.get(), "lock", 0)) TRY(Tidy());
  TRY(DropReserved(dir_.get(), history_));
  for (const std::string& name : TRY(ListNames(dir_.get(), "trash"))) {
    const std::string path = "trash/" + name;
    Status removed = RemoveTree(dir_.get(), path);
    // Somebody else is at it, too; each round leaves less.
    while (!removed && removed.error().code == ENOENT) {
      removed = RemoveTree(dir_.get(), path);
    }
    TRY(std::move(removed));
  }
  return {};
}

Result<std::string> Store::ReadDaemonRecord(const std::string& id) {
  if (!IsTransactionId(id)) return Fail(ENOENT, "transaction " + id);
  return ReadWholeFile(dir_.get(), DaemonPath(id));
}

Status Store::WriteDaemonRecord(const std::string& id, std::string_view json) {
  const UniqueFd dir = TRY(TransactionDir(id));
  // The lock may have been taken by the process that became the daemon's
  // parent; messages name who holds it now.
  const UniqueFd lock = TRY(OpenOwnFileBelow(dir.get(), "lock", O_RDWR));
  TRY(WriteLockHolder(lock.get()));
  return ReplaceFile(dir.get(), "daemon.json", json);
}

Status Store::RemoveDaemonRecord(const std::string& id) {
  if (!IsTransactionId(id)) return Fail(ENOENT, "transaction " + id);
  return RemoveTree(dir_.get(), DaemonPath(id));
}

Result<UniqueFd> Store::TransactionDir(const std::string& id) {
  const std::string remedy = "`txfs list` shows the transactions";
  if (!IsTransactionId(id))
    return Fail(ENOENT, "transaction \"" + id + "\"", remedy);
  auto dir = OpenDirectoryBelow(dir_.get(), TxnPath(id));
  if (!dir && dir.error().code == ENOENT) {
    return Fail(ENOENT, "open transaction " + id, remedy);
  }
  if (!dir) return std::unexpected(Explain(std::move(dir).error()));
  return dir;
}

}  // namespace txfs

#include "fs/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <thread>

#include "fs/change_list.h"
#include "fs/commit_plan.h"
#include "fs/commit_run.h"
#include "fs/overlay.h"
#include "fs/past.h"
#include "fs/savepoints.h"
#include "journal/base/file.h"
#include "journal/base/mutex.h"

namespace txfs {
namespace {

constexpr const char* kStoreName = ".txfs";
constexpr const char* kStageName = "stage";
constexpr const char* kStateKey = "state";
constexpr const char* kPlanKey = "plan";
constexpr const char* kMessageKey = "message";
constexpr const char* kChangesKey = "changes";

Result<std::string> AbsoluteDirectory(const std::string& path) {
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) {
    return Fail(errno, "workspace " + path,
                "name an existing directory as the workspace");
  }
  struct stat st{};
  if (::stat(resolved, &st) != 0) return Fail(errno, "workspace " + path);
  if (!S_ISDIR(st.st_mode)) {
    return Fail(ENOTDIR, "workspace " + path,
                "name an existing directory as the workspace");
  }
  return std::string(resolved);
}

std::unexpected<Error> CannotMakeStore(const std::string& path, Error error) {
  error.message = "store " + path + " cannot be made";
  error.hint = "choose a writable directory with --store DIR";
  return std::unexpected(std::move(error));
}

/// Makes a directory in the workspace root without a trace in its times.
Status MakeUnseen(int root, const char* name) {
  struct stat st{};
  if (::fstat(root, &st) != 0) return Fail(errno, "stat workspace");
  if (::mkdirat(root, name, 0700) != 0) {
    if (errno == EEXIST) return {};
    return Fail(errno, std::string("mkdir ") + name);
  }
  const timespec times[2] = {st.st_atim, st.st_mtim};
  // Not ours to change when somebody else owns the workspace.
  std::ignore = ::futimens(root, times);
  return {};
}

/// Whether a commit's plan is complete: from there on there is only forward.
bool IsPastNoReturn(Journal& journal) {
  const auto state = journal.GetMeta(kStateKey);
  return state && (*state == StateName(TransactionState::kCommitting) ||
                   *state == StateName(TransactionState::kCommitted));
}

/// Who did what the user asked of us, for the log.
Caller Ourselves() {
  return {.pid = static_cast<uint32_t>(::getpid()),
          .uid = ::geteuid(),
          .gid = ::getegid()};
}

class StoredWorkspace final : public Workspace {
 public:
  StoredWorkspace(const WorkspaceOptions& options, std::string path,
                  UniqueFd base, std::unique_ptr<Store> store)
      : options_(options),
        path_(std::move(path)),
        base_(std::move(base)),
        store_(std::move(store)) {}

  ~StoredWorkspace() override { StopEmptying(); }

  Status Start();

  Filesystem& filesystem() override { return *filesystem_; }
  Store& store() override { return *store_; }
  [[nodiscard]] std::string transaction_id() const override {
    const MutexLock lock(mutex_);
    return summary_.id;
  }
  [[nodiscard]] const std::string& path() const override { return path_; }

  Result<WorkspaceStatus> GetStatus() override;
  Result<std::vector<NetChange>> Changes(
      bool expand, const std::vector<std::string>& below) override;
  Result<std::vector<NetChange>> ChangesSince(
      const std::string& savepoint,
      const std::vector<std::string>& below) override;
  Result<size_t> ReadPast(const std::string& savepoint, Ino ino,
                          uint64_t offset, MutableByteSpan out) override;
  Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                          MutableByteSpan out) override {
    return filesystem_->ReadBase(base_path, offset, out);
  }
  Result<CommitReport> Commit(const std::string& message) override;
  Result<std::string> Discard() override;
  Result<Savepoint> MakeSavepoint(const std::string& name) override;
  Result<RollbackReport> Rollback(const std::string& name) override;
  Status ReadLog(Lsn first,
                 const std::function<bool(const LogEntry&)>& visit) override {
    return filesystem_->journal()->ReadLog(first, visit);
  }
  void OnStaleCaches(
      std::function<void(const StaleCaches&)> listener) override {
    const MutexLock lock(mutex_);
    listener_ = std::move(listener);
  }
  Status Close() override;

 private:
  Result<OpenTransaction> BeginOrResume();
  Status Adopt(OpenTransaction transaction);
  Status FinishInterrupted(Journal& journal);

  Result<UniqueFd> OpenStage(bool fresh);
  void RemoveForeignStage();
  Result<CommitReport> CommitFrozen(OverlayFilesystem::Frozen& frozen,
                                    const std::string& message,
                                    uint64_t changes, StaleCaches& stale,
                                    std::shared_ptr<Journal>& old)
      REQUIRES(end_mutex_);
  Status PassPointOfNoReturn(OverlayFilesystem::Frozen& frozen,
                             const std::string& message, uint64_t changes,
                             const std::vector<CommitStep>& steps);
  Status RunSteps(OverlayFilesystem::Frozen& frozen,
                  const std::vector<CommitStep>& steps);
  [[nodiscard]] TransactionSummary Ended(TransactionState state,
                                         const std::string& message,
                                         uint64_t changes) const
      REQUIRES(end_mutex_);
  Status SwitchTo(OverlayFilesystem::Frozen& frozen,
                  const TransactionSummary& ended, PreparedTransaction prepared,
                  bool committed, StaleCaches& stale,
                  std::shared_ptr<Journal>& old) REQUIRES(end_mutex_);
  Result<PreparedTransaction> PrepareNext(const std::string& name,
                                          Journal& journal);
  Status CheckNotCommitting();
  Result<std::shared_ptr<Past>> PastAt(const std::string& name);
  void Tell(const StaleCaches& stale);
  void EmptyTrashInBackground() REQUIRES(end_mutex_);
  void StopEmptying() REQUIRES(end_mutex_);

  const WorkspaceOptions options_;
  const std::string path_;
  UniqueFd base_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<OverlayFilesystem> filesystem_;
  Mutex end_mutex_;  ///< one commit or discard at a time; before mutex_
  mutable Mutex mutex_;
  TransactionSummary summary_ GUARDED_BY(mutex_);
  std::optional<FileLock> transaction_lock_ GUARDED_BY(mutex_);
  std::function<void(const StaleCaches&)> listener_ GUARDED_BY(mutex_);
  std::thread emptying_ GUARDED_BY(end_mutex_);
  Mutex past_mutex_;  ///< before the filesystem's locks
  std::shared_ptr<Past> past_ GUARDED_BY(past_mutex_);  ///< shared with readers
};

// --- opening ---------------------------------------------------------------

Result<OpenTransaction> StoredWorkspace::BeginOrResume() {
  const std::vector<std::string> ids = TRY(store_->OpenIds());
  if (!ids.empty()) return store_->Resume(ids.front(), options_.journal);
  if (!options_.begin) {
    return Fail(ENOENT, "workspace " + path_ + " has no open transaction",
                "`txfs mount` begins one");
  }
  return store_->Begin(options_.name, options_.filesystem.clock->Now(),
                       options_.journal);
}

Status StoredWorkspace::Start() {
  for (;;) {
    OpenTransaction transaction = TRY(BeginOrResume());
    const bool interrupted = IsPastNoReturn(*transaction.journal);
    TRY(Adopt(std::move(transaction)));
    if (!interrupted) break;
    TRY(FinishInterrupted(*filesystem_->journal()));
  }
  const MutexLock ending(end_mutex_);
  EmptyTrashInBackground();
  return {};
}

Status StoredWorkspace::Adopt(OpenTransaction transaction) {
  for (const TransactionSummary& summary : TRY(store_->List())) {
    if (summary.id != transaction.id) continue;
    const MutexLock lock(mutex_);
    summary_ = summary;
  }
  {
    const MutexLock lock(mutex_);
    summary_.id = transaction.id;
    transaction_lock_.emplace(std::move(transaction.lock));
  }
  UniqueFd base = TRY(OpenAt(base_.get(), ".", O_RDONLY | O_DIRECTORY));
  filesystem_ = TRY(OverlayFilesystem::Open(
      std::move(base), std::move(transaction.journal), options_.filesystem));
  return {};
}

/// A commit passed its point of no return, then its process died.
Status StoredWorkspace::FinishInterrupted(Journal& journal) {
  const MutexLock ending(end_mutex_);
  const std::string state = TRY(journal.GetMeta(kStateKey));
  const std::string message = TRY(journal.GetMeta(kMessageKey));
  const std::string changes = TRY(journal.GetMeta(kChangesKey));
  if (state == StateName(TransactionState::kCommitting)) {
    const std::string plan = TRY(journal.GetMeta(kPlanKey));
    const std::vector<CommitStep> steps = TRY(DecodeSteps(AsBytes(plan)));
    TRY(filesystem_->WhileFrozen([&](OverlayFilesystem::Frozen& frozen) {
      return RunSteps(frozen, steps);
    }));
  }
  const TransactionSummary summary =
      Ended(TransactionState::kCommitted, message,
            std::strtoull(changes.c_str(), nullptr, 10));
  journal.Forget();
  filesystem_.reset();
  RemoveForeignStage();
  const MutexLock lock(mutex_);
  OpenTransaction transaction{summary.id, *std::move(transaction_lock_),
                              nullptr};
  transaction_lock_.reset();
  return store_->End(std::move(transaction), summary);
}

// --- questions -------------------------------------------------------------

Result<std::vector<NetChange>> StoredWorkspace::Changes(
    bool expand, const std::vector<std::string>& below) {
  ChangeList list =
      TRY(filesystem_->WhileFrozen([&](OverlayFilesystem::Frozen& frozen) {
        return ChangeList::Collect(frozen, expand);
      }));
  return SelectChanges(TRY(std::move(list).Settle(*filesystem_)), below);
}

Result<WorkspaceStatus> StoredWorkspace::GetStatus() {
  WorkspaceStatus status;
  {
    const MutexLock lock(mutex_);
    status.id = summary_.id;
    status.name = summary_.name;
    status.state = summary_.state;
    status.created = summary_.created;
  }
  status.workspace = path_;
  status.store = store_->display_path();
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  status.operations = Raw(journal->last_lsn());
  status.store_bytes = TRY(journal->StoreBytes());
  status.savepoints = journal->Savepoints();
  status.changes = TRY(Changes(false, {})).size();
  return status;
}

// --- ending ----------------------------------------------------------------

TransactionSummary StoredWorkspace::Ended(TransactionState state,
                                          const std::string& message,
                                          uint64_t changes) const {
  const MutexLock lock(mutex_);
  TransactionSummary ended = summary_;
  ended.state = state;
  ended.message = message;
  ended.changes = changes;
  ended.ended = options_.filesystem.clock->Now();
  return ended;
}

/// Where commit stages: in the transaction's directory, or, when the store is
/// elsewhere, in the workspace, so that renames do not cross filesystems.
/// `fresh`: empty, for what an earlier commit left would be taken for ours.
Result<UniqueFd> StoredWorkspace::OpenStage(bool fresh) {
  UniqueFd parent;
  if (options_.store) {
    TRY(MakeUnseen(base_.get(), kStoreName));
    parent = TRY(OpenAt(base_.get(), kStoreName, O_RDONLY | O_DIRECTORY));
  } else {
    parent = TRY(store_->TransactionDir(transaction_id()));
  }
  if (fresh) TRY(RemoveTree(parent.get(), kStageName));
  TRY(MakeDirectoryAt(parent.get(), kStageName, 0700));
  return OpenAt(parent.get(), kStageName, O_RDONLY | O_DIRECTORY);
}

void StoredWorkspace::RemoveForeignStage() {
  if (!options_.store) return;
  struct stat st{};
  const bool known = ::fstat(base_.get(), &st) == 0;
  std::ignore =
      RemoveTree(base_.get(), std::string(kStoreName) + "/" + kStageName);
  std::ignore = ::unlinkat(base_.get(), kStoreName, AT_REMOVEDIR);
  const timespec times[2] = {st.st_atim, st.st_mtim};
  if (known) std::ignore = ::futimens(base_.get(), times);
}

/// All of a commit but the talk: up to the point of no return nothing is
/// touched, after it there is only forward.
Result<CommitReport> StoredWorkspace::CommitFrozen(
    OverlayFilesystem::Frozen& frozen, const std::string& message,
    uint64_t changes, StaleCaches& stale, std::shared_ptr<Journal>& old) {
  const TransactionSummary ended =
      Ended(TransactionState::kCommitted, message, changes);
  CommitReport report{.id = ended.id, .changes = changes};
  std::vector<CommitStep> steps;
  const bool resumes = IsPastNoReturn(frozen.journal);
  if (resumes) {
    // An earlier attempt stopped half-way: go on where it was.
    const std::string plan = TRY(frozen.journal.GetMeta(kPlanKey));
    steps = TRY(DecodeSteps(AsBytes(plan)));
  } else {
    TRY(frozen.journal.Drain());
    report.conflicts = TRY(FindConflicts(frozen));
    if (!report.conflicts.empty()) return report;
  }
  PreparedTransaction prepared = TRY(PrepareNext(ended.name, frozen.journal));
  auto done = [&]() -> Status {
    if (!resumes) {
      CommitPlan plan = TRY(PlanCommit(frozen));
      TRY(frozen.PinOrphans());
      const UniqueFd stage = TRY(OpenStage(true));
      CommitRunner runner(frozen, stage.get());
      TRY(runner.CheckPermitted(plan.steps));
      TRY(runner.Stage(plan));
      TRY(PassPointOfNoReturn(frozen, message, changes, plan.steps));
      report.withheld = std::move(plan.withheld);
      steps = std::move(plan.steps);
    }
    return RunSteps(frozen, steps);
  }();
  if (!done) {
    store_->Cancel(std::move(prepared));
    return std::unexpected(std::move(done).error());
  }
  TRY(SwitchTo(frozen, ended, std::move(prepared), true, stale, old));
  return report;
}

/// From the moment that the state may be written, mutations are refused: what
/// they change would not be in the plan.
Status StoredWorkspace::PassPointOfNoReturn(
    OverlayFilesystem::Frozen& frozen, const std::string& message,
    uint64_t changes, const std::vector<CommitStep>& steps) {
  Journal& journal = frozen.journal;
  const Bytes plan = EncodeSteps(steps);
  TRY(journal.PutMeta(kPlanKey, AsText(plan)));
  TRY(journal.PutMeta(kMessageKey, message));
  TRY(journal.PutMeta(kChangesKey, std::to_string(changes)));
  frozen.SetHalted(true);
  auto passed =
      journal.PutMeta(kStateKey, StateName(TransactionState::kCommitting));
  if (!passed) {
    frozen.SetHalted(IsPastNoReturn(journal));
    return passed;
  }
  const MutexLock lock(mutex_);
  summary_.state = TransactionState::kCommitting;
  // For `txfs list` only: the journal is what counts.
  std::ignore = store_->UpdateSummary(summary_);
  return {};
}

Status StoredWorkspace::RunSteps(OverlayFilesystem::Frozen& frozen,
                                 const std::vector<CommitStep>& steps) {
  const auto run = [&]() -> Status {
    const UniqueFd stage = TRY(OpenStage(false));
    TRY(CommitRunner(frozen, stage.get()).Run(steps));
    return frozen.journal.PutMeta(kStateKey,
                                  StateName(TransactionState::kCommitted));
  }();
  if (!run) {
    Error error = run.error();
    error.message =
        "commit of " + path_ + " stopped half-way: " + error.message;
    error.hint = "remove the cause, then run `txfs commit` again: it goes on";
    return std::unexpected(std::move(error));
  }
  return {};
}

Status StoredWorkspace::SwitchTo(OverlayFilesystem::Frozen& frozen,
                                 const TransactionSummary& ended,
                                 PreparedTransaction prepared, bool committed,
                                 StaleCaches& stale,
                                 std::shared_ptr<Journal>& old) {
  const Timestamp now = options_.filesystem.clock->Now();
  OpenTransaction next = TRY(store_->Succeed(ended, std::move(prepared)));
  frozen.journal.Forget();
  old = std::move(next.journal);
  stale = frozen.Reset(old, committed);
  const MutexLock lock(mutex_);
  summary_ =
      TransactionSummary{.id = next.id, .name = ended.name, .created = now};
  transaction_lock_.emplace(std::move(next.lock));
  return {};
}

Result<CommitReport> StoredWorkspace::Commit(const std::string& message) {
  const MutexLock ending(end_mutex_);
  const uint64_t changes = TRY(Changes(false, {})).size();
  StaleCaches stale;
  std::shared_ptr<Journal> old;
  auto report = filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen)
          NO_THREAD_SAFETY_ANALYSIS -> Result<CommitReport> {
            return CommitFrozen(frozen, message, changes, stale, old);
          });
  if (!report || !report->conflicts.empty()) return report;
  old.reset();
  RemoveForeignStage();
  Tell(stale);
  EmptyTrashInBackground();
  return report;
}

Result<std::string> StoredWorkspace::Discard() {
  const MutexLock ending(end_mutex_);
  TRY(CheckNotCommitting());
  const uint64_t changes = TRY(Changes(false, {})).size();
  const TransactionSummary ended =
      Ended(TransactionState::kDiscarded, "", changes);
  PreparedTransaction prepared =
      TRY(PrepareNext(ended.name, *filesystem_->journal()));
  StaleCaches stale;
  std::shared_ptr<Journal> old;
  TRY(filesystem_->WhileFrozen(
      [&](OverlayFilesystem::Frozen& frozen) NO_THREAD_SAFETY_ANALYSIS {
        return SwitchTo(frozen, ended, std::move(prepared), false, stale, old);
      }));
  old.reset();
  Tell(stale);
  EmptyTrashInBackground();
  return ended.id;
}

Status StoredWorkspace::CheckNotCommitting() {
  if (!IsPastNoReturn(*filesystem_->journal())) return {};
  return Fail(ErrorKind::kBusy, 0, "a commit of " + path_ + " stopped half-way",
              "run `txfs commit` again: it goes on");
}

// --- savepoints ------------------------------------------------------------

Result<Savepoint> StoredWorkspace::MakeSavepoint(const std::string& name) {
  const MutexLock ending(end_mutex_);
  TRY(CheckNotCommitting());
  const auto existing = filesystem_->journal()->Savepoints();
  return filesystem_->MarkSavepoint(Ourselves(),
                                    TRY(NameSavepoint(existing, name)));
}

Result<RollbackReport> StoredWorkspace::Rollback(const std::string& name) {
  const MutexLock ending(end_mutex_);
  TRY(CheckNotCommitting());
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  RollbackReport report;
  report.savepoint = TRY(FindSavepoint(journal->Savepoints(), name));
  // Most of what is to be drained need not be while all is frozen.
  TRY(journal->Drain());
  const StaleCaches stale =
      TRY(filesystem_->WhileFrozen([&](OverlayFilesystem::Frozen& frozen) {
        return frozen.Rollback(Ourselves(), report.savepoint, &report.undone);
      }));
  Tell(stale);
  // Gives back the space of what was undone. When that fails, the next drain
  // does.
  std::ignore = journal->Drain();
  return report;
}

/// The last one asked for is kept: a diff asks for it once per file.
Result<std::shared_ptr<Past>> StoredWorkspace::PastAt(const std::string& name) {
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  const Savepoint savepoint = TRY(FindSavepoint(journal->Savepoints(), name));
  const MutexLock lock(past_mutex_);
  if (past_ && past_->Is(journal, savepoint)) return past_;
  past_.reset();
  past_ = TRY(filesystem_->WhileFrozen([&](OverlayFilesystem::Frozen& frozen) {
    return Past::At(frozen, savepoint);
  }));
  return past_;
}

Result<std::vector<NetChange>> StoredWorkspace::ChangesSince(
    const std::string& savepoint, const std::vector<std::string>& below) {
  std::shared_ptr<Past> past = TRY(PastAt(savepoint));
  SinceList list =
      TRY(filesystem_->WhileFrozen([&](OverlayFilesystem::Frozen& frozen) {
        return SinceList::Collect(frozen, std::move(past));
      }));
  return SelectChanges(TRY(std::move(list).Settle(*filesystem_)), below);
}

Result<size_t> StoredWorkspace::ReadPast(const std::string& savepoint, Ino ino,
                                         uint64_t offset, MutableByteSpan out) {
  return TRY(PastAt(savepoint))->Read(*filesystem_, ino, offset, out);
}

/// On a full disk the open transaction's reserve makes room for the next one.
Result<PreparedTransaction> StoredWorkspace::PrepareNext(
    const std::string& name, Journal& journal) {
  const auto prepare = [&] {
    return store_->Prepare(name, options_.filesystem.clock->Now(),
                           options_.journal);
  };
  auto prepared = prepare();
  const bool full = !prepared && (prepared.error().code == ENOSPC ||
                                  prepared.error().code == EDQUOT);
  if (full && journal.GiveUpReserve()) prepared = prepare();
  return prepared;
}

void StoredWorkspace::Tell(const StaleCaches& stale) {
  std::function<void(const StaleCaches&)> listener;
  {
    const MutexLock lock(mutex_);
    listener = listener_;
  }
  if (listener) listener(stale);
}

void StoredWorkspace::EmptyTrashInBackground() {
  StopEmptying();
  // What is left when it fails is tried again at the next end of one.
  emptying_ = std::thread([this] { std::ignore = store_->EmptyTrash(); });
}

void StoredWorkspace::StopEmptying() {
  if (emptying_.joinable()) emptying_.join();
}

Status StoredWorkspace::Close() {
  const MutexLock ending(end_mutex_);
  StopEmptying();
  if (!filesystem_) return {};
  return filesystem_->journal()->Drain();
}

}  // namespace

Result<std::unique_ptr<Workspace>> Workspace::Open(
    const WorkspaceOptions& options) {
  std::string path = TRY(AbsoluteDirectory(options.path));
  UniqueFd base = TRY(OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  std::string store_path = options.store.value_or(path + "/" + kStoreName);
  if (!options.store && options.begin) {
    auto made = MakeUnseen(base.get(), kStoreName);
    if (!made) return CannotMakeStore(store_path, std::move(made).error());
  } else if (options.store && options.begin) {
    auto made = MakeDirectoryAt(AT_FDCWD, store_path, 0700);
    if (!made) return CannotMakeStore(store_path, std::move(made).error());
  }
  auto dir = options.store
                 ? OpenAt(AT_FDCWD, store_path, O_RDONLY | O_DIRECTORY)
                 : OpenAt(base.get(), kStoreName, O_RDONLY | O_DIRECTORY);
  if (!dir && dir.error().code == ENOENT) {
    return Fail(ENOENT, "workspace " + path + " has no store",
                "`txfs mount` makes one");
  }
  UniqueFd store_dir = TRY(std::move(dir));
  std::unique_ptr<Store> store =
      TRY(Store::Open(std::move(store_dir), store_path, path));
  auto workspace = std::make_unique<StoredWorkspace>(
      options, std::move(path), std::move(base), std::move(store));
  TRY(workspace->Start());
  return workspace;
}

}  // namespace txfs

#include "fs/workspace/workspace.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <iterator>

#include "fs/diff/change_list.h"
#include "fs/diff/plain_files.h"
#include "fs/overlay/linked_names.h"
#include "fs/vault/vaults.h"
#include "fs/workspace/stored_workspace.h"
#include "journal/support/file.h"
#include "journal/support/memory.h"

namespace txfs {
namespace {

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
  error.message = "cannot create store " + path;
  error.hint = "choose a writable directory with --store DIR";
  return std::unexpected(std::move(error));
}

Result<UniqueFd> OpenStoreDirectory(const WorkspaceOptions& options,
                                    const std::string& path) {
  const std::string& store = options.store;
  if (options.store_directory) {
    return OpenAt(options.store_directory->get(), ".", O_RDONLY | O_DIRECTORY);
  }
  if (options.begin) {
    auto made = MakeDirectoryAt(AT_FDCWD, store, 0700);
    if (!made) return CannotMakeStore(store, std::move(made).error());
  }
  auto dir = Store::OpenDirectory(AT_FDCWD, store, store);
  if (dir || dir.error().code != ENOENT) return dir;
  return Fail(0, "workspace " + path + " has no store",
              "`txfs mount` makes one");
}

/// A query does not write to the journal.
StaleCaches FollowLater(Frozen& frozen) {
  return BaseFollower(frozen, BaseFollower::Journaling::kLater)
      .Follow(PlainFiles::Find(frozen, Wanted::kNothing).others);
}

/// Whether what was followed may make another file plain, or a plain one not.
bool MayChangePlain(const Tree& tree, const StaleCaches& stale) {
  return !stale.names.empty() || !stale.attributes.empty() ||
         std::ranges::any_of(stale.inodes, [&](Ino ino) {
           const Inode* inode = tree.Find(ino);
           return inode == nullptr || inode->IsDirectory();
         });
}

/// The plain files, from `survey` or, where following the base changed the
/// tree, found anew.
PlainFiles FollowAndFind(Frozen& frozen, PlainSurvey& survey,
                         StaleCaches& stale) {
  PlainFiles plain = PlainFiles::Find(frozen, survey);
  const uint64_t before = frozen.tree.name_changes();
  stale = BaseFollower(frozen, BaseFollower::Journaling::kLater)
              .Follow(plain.others);
  if (frozen.tree.name_changes() == before &&
      !MayChangePlain(frozen.tree, stale)) {
    frozen.LeaveTree();
    return plain;
  }
  plain = PlainFiles();
  return PlainFiles::Find(frozen, survey.wanted());
}

/// The conflicts at `among`, which is null or PlainFiles::others.
Result<std::vector<Conflict>> ConflictsNow(Frozen& frozen,
                                           const std::vector<Inode*>* among) {
  std::vector<Conflict> closed;
  std::vector<Conflict> list =
      ConflictsIn(TRY(FindDrift(frozen, &closed, among)));
  std::ranges::move(closed, std::back_inserter(list));
  return list;
}

/// So many candidates of a ChangeList take megabytes, which malloc would keep.
constexpr size_t kManyCandidates = 10'000;

}  // namespace

StoredWorkspace::StoredWorkspace(const WorkspaceOptions& options,
                                 std::string path, UniqueFd base,
                                 std::unique_ptr<Store> store)
    : options_(options),
      path_(std::move(path)),
      base_(std::move(base)),
      store_(std::move(store)),
      committer_(*store_, base_) {}

// --- opening ---------------------------------------------------------------

Result<std::optional<std::string>> StoredWorkspace::FindOpen() {
  for (const TransactionSummary& open : TRY(store_->ListOpen())) {
    if (open.name == options_.name) return std::optional(open.id);
  }
  return std::optional<std::string>();
}

Result<OpenTransaction> StoredWorkspace::BeginOrResume() {
  // Others begin and end meanwhile, but not for ever.
  constexpr int kTries = 100;
  for (int tries = 1;; ++tries) {
    const std::optional<std::string> id = TRY(FindOpen());
    if (id) {
      auto resumed = store_->Resume(*id, options_.journal);
      // It may have been thrown away since: one that followed a transaction of
      // which it was not known whether it had ended.
      const bool is_gone =
          !resumed && resumed.error().code == ENOENT && TRY(FindOpen()) != id;
      if (is_gone && tries < kTries) continue;
      return resumed;
    }
    if (!options_.begin) {
      return Fail(0,
                  "workspace " + path_ + " has no open transaction" +
                      (options_.name.empty() ? "" : " " + options_.name),
                  "`txfs mount` begins one");
    }
    auto begun = store_->Begin(options_.name, options_.filesystem.clock->Now(),
                               options_.journal);
    // Somebody else began it since: then it is to be resumed, or is in use.
    if (begun || begun.error().code != EEXIST || tries == kTries) return begun;
  }
}

Status StoredWorkspace::Start() {
  TRY(RecoverWithin(kCommitLockMs));
  OpenTransaction transaction = TRY(BeginOrResume());
  TRY(Adopt(std::move(transaction)));
  const MutexLock ending(end_mutex_);
  Collect();
  return {};
}

Status StoredWorkspace::Adopt(OpenTransaction transaction) {
  MarkSeen(TRY(store_->history().Ids()));
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
  UniqueFd base = TRY(OpenAt(base_.root(), ".", O_RDONLY | O_DIRECTORY));
  filesystem_ = TRY(OverlayFilesystem::Open(
      std::move(base), std::move(transaction.journal), options_.filesystem));
  filesystem_->origins().UsePreimages(
      std::make_shared<Preimages>(TRY(store_->TransactionDir(transaction.id))));
  filesystem_->origins().UseVaults(
      std::make_unique<VaultFiles>(base_, store_->dir()),
      std::make_unique<OverwrittenContent>(base_, store_->dir()));
  {
    const MutexLock lock(mutex_);
    filesystem_->origins().BeginsAt(summary_.created);
  }
  InterruptRuns();
  // Nobody has seen anything that could be stale.
  filesystem_->WhileFrozen(FollowLater);
  return {};
}

// --- questions -------------------------------------------------------------

Result<std::vector<NetChange>> Workspace::Changes(
    bool expand, const std::vector<std::string>& below) {
  std::vector<NetChange> changes;
  TRY(VisitChanges(expand, below, [&](NetChange change) -> Status {
    changes.push_back(std::move(change));
    return {};
  }));
  return changes;
}

Status StoredWorkspace::VisitChanges(bool expand,
                                     const std::vector<std::string>& below,
                                     const ChangeVisitor& visit) {
  size_t candidates = 0;
  StaleCaches stale;
  PreparePreimages();
  std::optional<PlainSurvey> survey(std::in_place, *filesystem_, Wanted::kList);
  {
    auto list = filesystem_->WhileFrozen([&](Frozen& frozen) {
      PlainFiles plain = FollowAndFind(frozen, *survey, stale);
      NoteNamesBelow(frozen.tree, frozen.base, below);
      return ChangeList::Collect(frozen, std::move(plain), expand);
    });
    survey.reset();
    if (!stale.empty()) Tell(std::move(stale));
    if (!list) return std::unexpected(std::move(list).error());
    candidates = list->size();
    list->Keep(
        [&](const NetChange& change) { return IsSelected(change, below); });
    TRY((*std::move(list)).Visit(*filesystem_, visit));
  }
  if (candidates > kManyCandidates) ReturnFreeMemory();
  return {};
}

void StoredWorkspace::PreparePreimages() {
  const auto preimages = filesystem_->origins().preimages();
  if (preimages) preimages->Prepare();
}

void StoredWorkspace::FollowBase() {
  StaleCaches stale = filesystem_->WhileFrozen(FollowLater);
  if (!stale.empty()) Tell(std::move(stale));
}

Result<std::vector<Conflict>> StoredWorkspace::FindConflicts() {
  const MutexLock ending(end_mutex_);
  // What is other than it was then is what our own commit made of it.
  if (IsHalfWay()) return std::vector<Conflict>();
  PreparePreimages();
  return filesystem_->WhileFrozen(
      [&](Frozen& frozen) { return ConflictsNow(frozen, nullptr); });
}

Result<uint64_t> StoredWorkspace::CountNetChanges(
    const std::function<void(Frozen&, const std::vector<Inode*>&)>& look) {
  StaleCaches stale;
  uint64_t changes = 0;
  PreparePreimages();
  std::optional<PlainSurvey> survey(std::in_place, *filesystem_,
                                    Wanted::kCount);
  auto list = filesystem_->WhileFrozen([&](Frozen& frozen) {
    PlainFiles plain = FollowAndFind(frozen, *survey, stale);
    changes = plain.changes;
    if (look) look(frozen, plain.others);
    return ChangeList::Collect(frozen, std::move(plain), false);
  });
  survey.reset();
  if (!stale.empty()) Tell(std::move(stale));
  if (!list) return std::unexpected(std::move(list).error());
  const size_t candidates = list->size();
  TRY((*std::move(list)).Visit(*filesystem_, [&](const NetChange&) -> Status {
    ++changes;
    return {};
  }));
  list = ChangeList();
  if (candidates > kManyCandidates) ReturnFreeMemory();
  return changes;
}

Result<WorkspaceStatus> StoredWorkspace::GetStatus() {
  WorkspaceStatus status = TRY(StatusWithoutChanges());
  status.changes = TRY(CountNetChanges({}));
  return status;
}

Result<FullStatus> StoredWorkspace::GetFullStatus() {
  FullStatus full{TRY(StatusWithoutChanges()), std::vector<Conflict>()};
  const MutexLock ending(end_mutex_);
  // What is other than it was then is what our own commit made of it.
  const bool is_half_way = IsHalfWay();
  full.status.changes = TRY(
      CountNetChanges([&](Frozen& frozen, const std::vector<Inode*>& among) {
        if (!is_half_way) full.conflicts = ConflictsNow(frozen, &among);
      }));
  return full;
}

Result<WorkspaceStatus> StoredWorkspace::StatusWithoutChanges() {
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
  const auto preimages = filesystem_->origins().preimages();
  status.store_bytes =
      TRY(journal->StoreBytes()) + (preimages ? preimages->bytes() : 0);
  std::vector<Savepoint> savepoints = journal->Savepoints();
  status.calls = static_cast<uint64_t>(
      std::ranges::count_if(savepoints, [](const Savepoint& savepoint) {
        const auto call = CallNamed(savepoint.name);
        return call && !call->end;
      }));
  status.savepoints = WithoutCalls(std::move(savepoints));
  status.denied = TRY(journal->ReadDenials()).CountByRule();
  return status;
}

Status StoredWorkspace::KeepFollowed() {
  return filesystem_->WhileFrozen(
      [](Frozen& frozen) { return frozen.JournalFollowed(); });
}

Status StoredWorkspace::Close() {
  const MutexLock ending(end_mutex_);
  StopCollecting();
  // Without an id no transaction has begun since the disk was full.
  if (!filesystem_ || transaction_id().empty()) return {};
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  if (!IsUnused(*journal)) return journal->Drain();
  journal->Forget();
  TRY(store_->Drop(transaction_id()));
  return store_->EmptyTrash();
}

bool StoredWorkspace::IsUnused(const Journal& journal) const {
  return follows_ && !options_.name.empty() && Raw(journal.last_lsn()) == 0;
}

namespace {

Result<std::unique_ptr<StoredWorkspace>> OpenStored(
    const WorkspaceOptions& options) {
  std::string path =
      options.base ? options.path : TRY(AbsoluteDirectory(options.path));
  UniqueFd base =
      options.base
          ? TRY(OpenAt(options.base->get(), ".", O_RDONLY | O_DIRECTORY))
          : TRY(OpenAt(AT_FDCWD, path, O_RDONLY | O_DIRECTORY));
  UniqueFd store_dir = TRY(OpenStoreDirectory(options, path));
  std::unique_ptr<Store> store =
      TRY(Store::Open(std::move(store_dir), options.store, path));
  return std::make_unique<StoredWorkspace>(options, std::move(path),
                                           std::move(base), std::move(store));
}

}  // namespace

Result<std::unique_ptr<Workspace>> Workspace::Open(
    const WorkspaceOptions& options) {
  std::unique_ptr<StoredWorkspace> workspace = TRY(OpenStored(options));
  TRY(workspace->Start());
  return workspace;
}

Result<DiscardReport> Workspace::DiscardUnread(
    const WorkspaceOptions& options) {
  return TRY(OpenStored(options))->DiscardUnread();
}

}  // namespace txfs

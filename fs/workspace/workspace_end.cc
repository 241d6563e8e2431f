#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <thread>
#include <utility>

#include "fs/diff/change_list.h"
#include "fs/overlay/path_events.h"
#include "fs/planning/settle.h"
#include "fs/workspace/stored_workspace.h"
#include "journal/deferred_journal.h"
#include "journal/support/file.h"
#include "journal/support/memory.h"
#include "journal/support/thread.h"

namespace txfs {
namespace {

/// Of nice(2), the lowest.
constexpr int kLowPriority = 19;

}  // namespace

// --- recovery --------------------------------------------------------------

Result<FileLock> StoredWorkspace::LockCommits() {
  if (half_way_ && half_way_->lock) {
    return *std::exchange(half_way_->lock, std::nullopt);
  }
  return committer_.Lock(kCommitLockMs);
}

Status StoredWorkspace::RecoverWithin(int timeout_ms) {
  const bool unfinished = store_->history().HasIntent();
  const auto has_news = [&] { return filesystem_ && !FindNews().empty(); };
  if (!unfinished && !has_news()) return {};
  const MutexLock ending(end_mutex_);
  if (unfinished) TRY(FinishOthers(timeout_ms));
  // Who made them died before it told us.
  if (!IsHalfWay() && has_news()) RefreshTree();
  return {};
}

std::vector<std::string> StoredWorkspace::FindNews() {
  std::vector<std::string> unseen;
  const auto ids = store_->history().Ids();
  if (!ids) return unseen;  // the next one who asks for the history says why
  {
    const MutexLock lock(mutex_);
    std::ranges::set_difference(*ids, seen_, std::back_inserter(unseen));
  }
  // Others, too, throw away what they did; that need not be read again.
  std::erase_if(unseen, [&](const std::string& id) {
    const auto summary = store_->history().Read(id);
    const bool is_none = summary
                             ? summary->state != TransactionState::kCommitted
                             : summary.error().code == ENOENT;
    if (is_none) MarkSeen({id});
    return is_none;
  });
  return unseen;
}

void StoredWorkspace::MarkSeen(const std::vector<std::string>& ids) {
  const MutexLock lock(mutex_);
  seen_.insert(ids.begin(), ids.end());
}

void StoredWorkspace::ForgetDropped() {
  const auto ids = store_->history().Ids();
  if (!ids) return;
  const MutexLock lock(mutex_);
  std::erase_if(seen_, [&](const std::string& id) {
    return !std::ranges::binary_search(*ids, id);
  });
}

Status StoredWorkspace::FinishOthers(int timeout_ms) {
  if (IsHalfWay() || !store_->history().HasIntent()) return {};
  const FileLock lock = TRY(committer_.Lock(timeout_ms));
  return FinishUnfinished();
}

Result<std::string> StoredWorkspace::Recover() {
  TRY(RecoverWithin(0));
  if (filesystem_) {
    const std::shared_ptr<Journal> journal = filesystem_->journal();
    // Until there is room for it, what needs no transaction works.
    auto* const deferred = dynamic_cast<DeferredJournal*>(journal.get());
    if (deferred != nullptr) std::ignore = deferred->Ensure();
  }
  const MutexLock lock(mutex_);
  return std::exchange(recovered_, "");
}

Status StoredWorkspace::FinishUnfinished() {
  std::string id = TRY(committer_.FinishUnfinished());
  if (id.empty()) return {};
  {
    const MutexLock lock(mutex_);
    recovered_ = std::move(id);
  }
  if (filesystem_) RefreshTree();
  return {};
}

Status StoredWorkspace::RefuseHalfWay() {
  if (!IsHalfWay() && !discard_half_way_) return {};
  const std::string what = IsHalfWay() ? "commit" : "discard";
  return Fail(ErrorKind::kBusy, 0,
              "a " + what + " of " + path_ + " stopped half-way",
              "run `txfs " + what + "` again to continue it");
}

// --- the next transaction --------------------------------------------------

TransactionSummary StoredWorkspace::Ended(TransactionState state,
                                          const std::string& message,
                                          uint64_t changes,
                                          Journal& journal) const {
  // An end does not fail for want of what is only told.
  const auto denials = journal.ReadDenials();
  const MutexLock lock(mutex_);
  TransactionSummary ended = summary_;
  ended.state = state;
  ended.message = message;
  ended.changes = changes;
  ended.author = CurrentUser();
  ended.ended = options_.filesystem.clock->Now();
  if (denials) ended.denied = denials->CountByRule();
  AddSettledRun(ended);
  return ended;
}

void StoredWorkspace::GoOnWith(Frozen& frozen, OpenTransaction next,
                               Remains& old) {
  Replace(frozen, std::move(next.journal), {.id = next.id}, old);
  if (auto dir = store_->TransactionDir(next.id)) {
    frozen.origins.UsePreimages(std::make_shared<Preimages>(std::move(*dir)));
  }
  const MutexLock lock(mutex_);
  transaction_lock_.emplace(std::move(next.lock));
}

void StoredWorkspace::GoOnWithout(Frozen& frozen, std::shared_ptr<Journal> next,
                                  Remains& old) {
  Replace(frozen, std::move(next), {}, old);
  const MutexLock lock(mutex_);
  transaction_lock_.reset();
}

void StoredWorkspace::Replace(Frozen& frozen, std::shared_ptr<Journal> next,
                              TransactionSummary summary, Remains& old) {
  frozen.journal.Forget();
  old.journal = std::move(next);
  frozen.SwapJournal(old.journal);
  old.preimages = frozen.origins.UsePreimages(nullptr);
  old.dropped = frozen.tree.TakeDropped();
  const MutexLock lock(mutex_);
  follows_ = true;
  summary.name = summary_.name;
  summary.created = options_.filesystem.clock->Now();
  summary.runs = RunsThatGoOn();
  summary_ = std::move(summary);
  if (!summary_.runs.empty()) WriteRuns();
  filesystem_->origins().BeginsAt(summary_.created);
}

// Pre-images are not kept in such a transaction: that would take one more lock
// here, and they matter only when the base is changed meanwhile.
Result<std::unique_ptr<Journal>> StoredWorkspace::BeginDeferred() {
  const Timestamp now = options_.filesystem.clock->Now();
  OpenTransaction begun =
      TRY(store_->Begin(options_.name, now, options_.journal));
  const MutexLock lock(mutex_);
  summary_.id = begun.id;
  summary_.created = now;
  transaction_lock_.emplace(std::move(begun.lock));
  return std::move(begun.journal);
}

// --- discard ---------------------------------------------------------------

/// A discard and a rollback take the base to be as it was when it was first
/// looked at; here somebody else's changes are found. In small parts, since
/// nobody gets an answer meanwhile.
StaleCaches StoredWorkspace::LookAgain(std::span<const Ino> inos) {
  constexpr size_t kAtOnce = 1000;
  bool first = true;
  StaleCaches all;
  while (!inos.empty()) {
    const auto part = inos.first(std::min(inos.size(), kAtOnce));
    inos = inos.subspan(part.size());
    StaleCaches stale = filesystem_->WhileFrozen([&](Frozen& frozen) {
      if (std::exchange(first, false)) frozen.ForgetDirectories();
      return BaseFollower(frozen).Refresh(part);
    });
    Tell(stale);
    all.Append(std::move(stale));
  }
  return all;
}

/// The base is shown before anything is on disk, for that is what may take
/// long, and taken back if it fails. Mutations wait until it is known.
Result<DiscardReport> StoredWorkspace::Discard() {
  const MutexLock ending(end_mutex_);
  if (IsHalfWay()) return std::unexpected(RefuseHalfWay().error());
  DiscardReport report;
  // Nothing has begun since the disk was full: there is nothing to discard.
  if (transaction_id().empty()) return report;
  Handover::ChangedInodes changed;
  StaleCaches shown;
  StaleCaches taken_back;
  Remains old;
  // The kernel may be waiting for an operation, which waits for us: it is told
  // by others, and they are waited for when we have let go of everything.
  std::latch known_told(1);
  std::optional<Meanwhile> tells_changed;
  std::optional<Meanwhile> tells_shown;
  Status discarded = filesystem_->WhileReadOnly([&]() {
    end_mutex_.AssertHeld();
    filesystem_->WhileFrozen([&](Frozen& frozen) {
      changed = Handover(frozen).Changed();
      tells_changed.emplace([&] {
        TellKernel(changed.known);
        known_told.count_down();
      });
      // Counting them exactly would take a look at the whole base.
      TouchedCount touched(frozen.tree);
      shown = Handover(frozen).Reset(
          false, [&](const Inode& inode) { touched.Add(inode); });
      report.changes = touched.Total();
    });
    tells_shown.emplace([&] {
      TellKernel(filesystem_->InFlight(changed.known));
      known_told.wait();
      Tell(shown);
      Tell(changed.unknown);
    });
    const TransactionSummary ended =
        Ended(TransactionState::kDiscarded, "", report.changes,
              *filesystem_->journal());
    report.id = ended.id;
    return EndDiscarded(ended, taken_back, old);
  });
  tells_changed.reset();
  tells_shown.reset();
  Tell(taken_back);
  old = {};
  TRY(std::move(discarded));
  StaleCaches all = LookAgain(changed.known.inodes);
  all.Append(LookAgain(changed.unknown.inodes));
  all.Append(LookAgain(shown.inodes));
  all.Append(std::move(changed.known));
  all.Append(std::move(changed.unknown));
  all.Append(std::move(shown));
  TellWatchers(all);
  Collect();
  return report;
}

Status StoredWorkspace::EndDiscarded(const TransactionSummary& ended,
                                     StaleCaches& taken_back, Remains& old) {
  auto next = BeginNext(ended);
  if (!next && IsFull(next.error())) {
    std::ignore = store_->EmptyTrash();
    std::ignore = store_->DropBlank();
    next = BeginNext(ended);
  }
  const bool is_full = !next && IsFull(next.error());
  if (is_full && EndOnFullDisk(ended, old)) {
    discard_half_way_ = false;
    return {};
  }
  if (next) {
    filesystem_->WhileFrozen([&](Frozen& frozen) {
      end_mutex_.AssertHeld();
      GoOnWith(frozen, std::move(*next), old);
    });
    discard_half_way_ = false;
    return {};
  }
  bool half_way = discard_half_way_;
  filesystem_->WhileFrozen([&](Frozen& frozen) {
    if (!half_way) {
      auto restored = Handover(frozen).Restore();
      half_way = !restored;
      if (restored) taken_back = std::move(*restored);
    }
    frozen.SetHalted(half_way);
  });
  discard_half_way_ = half_way;
  return std::unexpected(std::move(next).error());
}

/// Nothing comes back before the transaction has ended and its files are
/// closed; the next one begins then, or with the first change that finds room.
Status StoredWorkspace::EndOnFullDisk(const TransactionSummary& ended,
                                      Remains& old) {
  TRY(store_->EndWithoutRoom(ended));
  const auto next =
      std::make_shared<DeferredJournal>([this] { return BeginDeferred(); });
  filesystem_->WhileFrozen([&](Frozen& frozen) {
    end_mutex_.AssertHeld();
    GoOnWithout(frozen, next, old);
  });
  old = {};
  store_->FreeEnded(ended);
  std::ignore = next->Ensure();
  return {};
}

Result<DiscardReport> StoredWorkspace::DiscardUnread() {
  TRY(RecoverWithin(kCommitLockMs));
  for (TransactionSummary& open : TRY(store_->ListOpen())) {
    if (open.name != options_.name) continue;
    const FileLock lock = TRY(store_->LockTransaction(open.id));
    open.state = TransactionState::kDiscarded;
    open.author = CurrentUser();
    open.ended = options_.filesystem.clock->Now();
    TRY(store_->EndWithoutRoom(open));
    store_->FreeEnded(open);
    return DiscardReport{.id = open.id};
  }
  return Fail(0, "workspace " + path_ + " has no open transaction",
              "`txfs list` shows the transactions");
}

Result<OpenTransaction> StoredWorkspace::BeginNext(
    const TransactionSummary& ended) {
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  filesystem_->promised_space().GiveUp(*journal);
  PreparedTransaction prepared = TRY(PrepareNext(ended, *journal));
  auto next = [&]() -> Result<OpenTransaction> {
    if (auto written = store_->history().Write(ended); !written) {
      store_->Cancel(std::move(prepared));
      return std::unexpected(std::move(written).error());
    }
    return store_->Succeed(ended.id, std::move(prepared));
  }();
  // If the record of its end stays all the same, the transaction has ended.
  if (!next) discard_half_way_ = !store_->history().Retract(ended.id);
  return next;
}

Result<PartDiscard> StoredWorkspace::DiscardPart(
    const std::vector<std::string>& paths) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  // Most of what is to be drained need not be while all is frozen.
  TRY(journal->Drain());
  const std::vector<NetChange> changes = TRY(Changes(false, {}));
  PartDiscard discarded;
  auto settled = filesystem_->WhileFrozen([&](Frozen& frozen) {
    end_mutex_.AssertHeld();
    return DiscardFrozen(frozen, paths, changes, discarded);
  });
  const StaleCaches stale = TRY(std::move(settled));
  Tell(stale);
  TellWatchers(stale);
  // Gives back the space. When that fails, the next drain does.
  std::ignore = journal->Drain();
  return discarded;
}

Result<StaleCaches> StoredWorkspace::DiscardFrozen(
    Frozen& frozen, const std::vector<std::string>& paths,
    const std::vector<NetChange>& changes, PartDiscard& discarded) {
  TRY(frozen.JournalFollowed());
  TRY(frozen.journal.Drain());
  const Selection selection =
      TRY(SelectPaths(frozen, paths, SelectionParents::kApart));
  discarded.changes = CountChanges(changes, PathsOf(frozen, selection));
  for (const Savepoint& savepoint : WithoutCalls(frozen.journal.Savepoints())) {
    discarded.savepoints.push_back(savepoint.name);
  }
  Image tables;
  TRY(frozen.journal.Load(tables));
  Change change = TRY(PlanSettlement(frozen, selection, tables, nullptr));
  frozen.Sign(Ourselves(), change);
  TRY(frozen.journal.Settle(change));
  StaleCaches stale = Handover(frozen).Settle(change, std::move(tables));
  stale.Append(BaseFollower(frozen).Follow());
  return stale;
}

uint64_t StoredWorkspace::CountChanges(const std::vector<NetChange>& changes,
                                       const std::set<std::string>& paths) {
  return static_cast<uint64_t>(
      std::ranges::count_if(changes, [&](const NetChange& change) {
        return paths.contains(change.path) ||
               (!change.old_path.empty() && paths.contains(change.old_path));
      }));
}

/// On a full disk the open transaction's reserve makes room for the next one.
Result<PreparedTransaction> StoredWorkspace::PrepareNext(
    const TransactionSummary& ended, Journal& journal) {
  return WithReserve(journal, [&] {
    return store_->Prepare(ended, options_.filesystem.clock->Now(),
                           options_.journal);
  });
}

void StoredWorkspace::Tell(StaleCaches stale) {
  std::ranges::move(filesystem_->InFlight(stale).names,
                    std::back_inserter(stale.names));
  TellKernel(stale);
}

void StoredWorkspace::TellKernel(const StaleCaches& stale) {
  std::function<void(const StaleCaches&)> listener;
  {
    const MutexLock lock(mutex_);
    listener = listener_;
    // Without a listener there is no kernel that has them.
    if (listener) std::ranges::copy(stale.moved, std::back_inserter(moved_));
  }
  if (listener) listener(stale);
}

void StoredWorkspace::TellWatchers(const StaleCaches& stale) {
  std::function<void(const std::vector<PathEvent>&)> listener;
  {
    const MutexLock lock(mutex_);
    listener = path_listener_;
  }
  if (!listener) return;
  const std::vector<PathEvent> events = filesystem_->WhileFrozen(
      [&](const Frozen& frozen) { return EventsOf(frozen, stale); });
  if (!events.empty()) listener(events);
}

// --- undo ------------------------------------------------------------------

Result<UndoReport> StoredWorkspace::Undo(const std::string& wanted) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const FileLock lock = TRY(LockCommits());
  TRY(FinishUnfinished());
  bool begun = false;
  const auto frozen = [&](const std::function<Status()>& work) {
    begun = true;
    return filesystem_->WhileFrozen([&](Frozen& held) -> Status {
      TRY(Handover(held).PinOrphans());
      return work();
    });
  };
  auto report =
      committer_.Undo(wanted, options_.filesystem.clock->Now(), frozen);
  // One that stopped half-way has changed the base, too.
  if (begun) RefreshTree();
  return report;
}

// --- afterwards ------------------------------------------------------------

Status StoredWorkspace::Refresh() {
  const MutexLock ending(end_mutex_);
  // Of what is half-way the paths of before are not to be looked for: the news
  // wait for the next command.
  if (!IsHalfWay()) RefreshTree();
  return {};
}

Status StoredWorkspace::CatchUp() {
  const MutexLock ending(end_mutex_);
  if (!IsHalfWay() && !FindNews().empty()) RefreshTree();
  return {};
}

void StoredWorkspace::RefreshTree() {
  const std::vector<std::string> news = FindNews();
  const StaleCaches stale = filesystem_->WhileFrozen(
      [](Frozen& frozen) { return BaseFollower(frozen).Refresh(); });
  Tell(stale);
  MarkSeen(news);
  TellWatchers(stale);
}

void StoredWorkspace::Collect() {
  StopCollecting();
  if (!options_.collects) return;
  stops_ = false;
  ForgetDropped();
  // What fails is tried again at the next end of a transaction.
  collecting_ = StartThread([this, pasts = TakePasts()]() mutable {
    pasts.clear();
    std::ignore = store_->EmptyTrash();
    Committer committer(*store_, base_);
    if (const auto lock = committer.Lock(0)) {
      std::ignore = committer.CollectGarbage(options_.retention);
    }
    if (options_.prepares) std::ignore = store_->MakeBlank(options_.journal);
    ReturnFreeMemory();
    if (!options_.sums) return;
    // Nobody waits for it; who works in the mount is to notice nothing.
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLowPriority);
    std::ignore = committer.SumVaults([this] { return stops_.load(); });
    ReturnFreeMemory();
  });
}

Result<GcReport> StoredWorkspace::CollectGarbage(const Retention& retention) {
  const MutexLock ending(end_mutex_);
  StopCollecting();
  TRY(RefuseHalfWay());
  return committer_.FreeSpace(retention, kCommitLockMs);
}

void StoredWorkspace::StopCollecting() {
  stops_ = true;
  if (collecting_.joinable()) collecting_.join();
}

}  // namespace txfs

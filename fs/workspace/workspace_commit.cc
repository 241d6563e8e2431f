#include <algorithm>
#include <utility>

#include "fs/commit/commit_run.h"
#include "fs/overlay/linked_names.h"
#include "fs/planning/commit_plan.h"
#include "fs/planning/commit_stage.h"
#include "fs/planning/commit_words.h"
#include "fs/planning/resolution.h"
#include "fs/planning/settle.h"
#include "fs/workspace/stored_workspace.h"

namespace txfs {
namespace {

Result<std::optional<Selection>> Select(Frozen& frozen,
                                        const CommitOptions& options) {
  std::optional<Selection> selection;
  if (options.within) {
    selection = TRY(SelectWithin(frozen, options.paths, options.except));
  } else if (!options.paths.empty()) {
    selection =
        TRY(SelectPaths(frozen, options.paths, SelectionParents::kNeeded));
  }
  return selection;
}

/// A path among `paths` that the options except; "": none.
std::string ExceptedAmong(const std::set<std::string>& paths,
                          const CommitOptions& options) {
  const auto found = std::ranges::find_if(
      options.except, [&](const auto& path) { return paths.contains(path); });
  return found == options.except.end() ? "" : *found;
}

/// The same, of what would be committed.
Result<std::string> FindDepends(Frozen& frozen, const CommitOptions& options) {
  if (options.within || options.except.empty() || options.paths.empty()) {
    return "";
  }
  // The transaction may have no change there any more.
  std::string asked =
      ExceptedAmong({options.paths.begin(), options.paths.end()}, options);
  if (!asked.empty()) return asked;
  const std::optional<Selection> selection = TRY(Select(frozen, options));
  return ExceptedAmong(PathsOf(frozen, *selection), options);
}

/// A part has nothing to do with what happened elsewhere.
Result<std::vector<Drift>> DriftUnder(
    Frozen& frozen, const std::optional<Selection>& selection) {
  std::vector<Drift> drifts = TRY(FindDrift(frozen));
  if (!selection) return drifts;
  const std::set<std::string> paths = PathsOf(frozen, *selection);
  // What is in a directory cannot be committed when the base has it no more.
  const auto takes_away = [&](const Drift& drift) {
    if (drift.theirs != TheirChange::kDeleted &&
        drift.theirs != TheirChange::kType) {
      return false;
    }
    const auto below = paths.lower_bound(drift.path + "/");
    return below != paths.end() && below->starts_with(drift.path + "/");
  };
  std::erase_if(drifts, [&](const Drift& drift) {
    return !paths.contains(drift.path) && !takes_away(drift);
  });
  return drifts;
}

/// Leaves what is held out of `selection`, if anything is.
Result<HeldReport> LeaveHeld(Frozen& frozen, const CommitOptions& options,
                             std::optional<Selection>& selection) {
  std::set<std::string> open;
  HeldReport held = TRY(FindHeld(
      frozen, selection ? &*selection : nullptr,
      {.rules = options.accepted, .paths = options.accepted_paths}, &open));
  held.left = !open.empty();
  if (!held.left) return held;
  const std::vector<std::string> all{""};
  selection =
      TRY(SelectWithin(frozen, options.paths.empty() ? all : options.paths,
                       {open.begin(), open.end()}));
  return held;
}

/// What people have to know when the disk, not the request, is the cause.
std::unexpected<Error> WithRemedy(Error error, const std::string& workspace,
                                  const std::string& store) {
  const bool disk = error.kind == ErrorKind::kFailed && error.code != 0;
  if (!disk || !error.hint.empty()) return std::unexpected(std::move(error));
  if (error.code == EROFS) {
    return Fail(error.code, "nothing was committed to " + workspace,
                "the transaction is unchanged: make the filesystem writable, "
                "then commit again");
  }
  if (!IsFull(error)) {
    return Fail(error.code,
                "nothing was committed to " + workspace + ": " + error.message,
                "the transaction is unchanged: remove the cause, then commit "
                "again");
  }
  return Fail(error.code,
              "nothing was committed (store " + store + "): " + error.message,
              "the transaction is unchanged: make room, perhaps with `txfs gc "
              "--keep-commits 1`, then commit again");
}

/// Whether not even times would be set: an entry of the history for that would
/// only take the place of one that means something.
bool LeavesBaseAlone(const CommitPlan& plan) {
  return plan.steps.empty() && plan.withheld.empty();
}

Result<bool> LeavesBaseAlone(Frozen& frozen,
                             const std::optional<Selection>& selection) {
  const CommitPlan plan =
      TRY(PlanCommit(frozen, {.selection = selection ? &*selection : nullptr}));
  return LeavesBaseAlone(plan);
}

/// All names about which the transaction had something to say.
std::vector<StaleCaches::Name> NamesOf(Frozen& frozen) {
  std::vector<StaleCaches::Name> names;
  frozen.tree.ForEachUpper([&](Inode& inode) {
    if (inode.names->upper == 0) return;
    for (const auto& [name, slot] : inode.names->slots) {
      if (!slot.IsUpper()) continue;
      names.push_back({inode.ino, name});
    }
  });
  return names;
}

/// What the two sides did differs, so what the kernel cached of one may be
/// other bytes than those of the outcome.
void AddDrifted(const std::vector<Drift>& drifts, StaleCaches& stale) {
  for (const Drift& drift : drifts) {
    for (const Ino ino : {drift.ino, drift.at_path}) {
      if (ino != kNoIno) stale.inodes.push_back(ino);
    }
  }
}

}  // namespace

Result<CommitReport> StoredWorkspace::Commit(const CommitOptions& options,
                                             const CommitProgress& progress) {
  const MutexLock ending(end_mutex_);
  const bool resolves = options.conflicts.on_conflict != OnConflict::kFail;
  if (options.without_held && resolves) {
    return Fail(ErrorKind::kUsage, 0,
                "conflicts can be resolved only in a commit of everything",
                "leave --without-held out, and accept what is held");
  }
  if (!options.paths.empty() && resolves) {
    return Fail(
        ErrorKind::kUsage, 0,
        "conflicts can be resolved only in a commit without paths",
        "leave the paths out, or run `txfs discard PATH...` to keep the "
        "workspace's version of PATH");
  }
  const bool resumes = IsHalfWay();
  CommitReport report = TRY(CommitOrGoOn(options, progress));
  if (!resumes || !report.partial) return report;
  // More may have been asked for now than that part.
  auto left = Changes(false, options.paths);
  if (left && left->empty()) return report;
  auto rest = left ? CommitOrGoOn(options, progress)
                   : std::unexpected(std::move(left).error());
  if (!rest) {
    Error error = std::move(rest).error();
    error.message = "the commit that had stopped half-way is finished (" +
                    report.id + "), but not the rest: " + error.message;
    return std::unexpected(std::move(error));
  }
  if (rest->nothing) return report;
  rest->finished = report.id;
  rest->savepoints.insert(rest->savepoints.begin(), report.savepoints.begin(),
                          report.savepoints.end());
  return rest;
}

/// What was asked for; where a commit has stopped half-way, the rest of that.
Result<CommitReport> StoredWorkspace::CommitOrGoOn(
    const CommitOptions& options, const CommitProgress& progress) {
  const bool resumes = IsHalfWay();
  if (!resumes) TRY(RefuseHalfWay());
  FileLock lock = TRY(LockCommits());
  if (!resumes) TRY(FinishUnfinished());
  // What others committed while we waited for the lock is to be seen, too, when
  // this is reported: who tells us of it may have given up by now.
  if (!resumes && !FindNews().empty()) RefreshTree();
  PreparePreimages();
  Attempt attempt{.options = options,
                  .progress = progress,
                  .changes = {},
                  .passed = {},
                  .vault = {},
                  .report = {},
                  .stale = {},
                  .old = {}};
  auto committed = [&]() -> Status {
    end_mutex_.AssertHeld();
    // Of what is half in the base there is nothing to be counted.
    if (!resumes) {
      NoteHeldNames();
      attempt.changes = TRY(Changes(false, {}));
    }
    // Most of what is to be drained need not be while all is frozen.
    TRY(filesystem_->journal()->DrainUnsynced());
    return filesystem_->WhileFrozen([&](Frozen& frozen) {
      end_mutex_.AssertHeld();
      Status done = CommitFrozen(frozen, attempt);
      // Some may be elsewhere by now, and others where they were.
      if (IsHalfWay()) frozen.ForgetDirectories();
      return done;
    });
  }();
  committer_.OnProgress({});
  if (!committed && !IsHalfWay() && !attempt.vault.empty()) {
    // What cannot be removed now goes with the next end of a transaction.
    std::ignore = committer_.vaults().Remove(attempt.vault);
  }
  if (IsHalfWay()) {
    half_way_->lock.emplace(std::move(lock));
  } else {
    // What collects garbage afterwards takes it, too.
    const FileLock released = std::move(lock);
  }
  attempt.old = {};
  Tell(attempt.stale);
  if (!committed && IsHalfWay()) {
    return committer_.HalfWay({}, std::move(committed).error(),
                              GoesOn::kByCommit);
  }
  if (!committed) {
    return WithRemedy(committed.error(), path_, store_->display_path());
  }
  MarkSeen({attempt.report.id});
  const CommitReport& report = attempt.report;
  if (report.committed()) Collect();
  return std::move(attempt.report);
}

/// All of a commit but the talk: up to the point of no return nothing is
/// touched, after it there is only forward.
Status StoredWorkspace::CommitFrozen(Frozen& frozen, Attempt& attempt) {
  CommitReport& report = attempt.report;
  std::unique_ptr<CommitRecord> record = TRY(committer_.Unfinished());
  Resolution resolution(frozen);
  attempt.passed = [&] { resolution.Keep(); };
  bool drifted = false;
  if (!record) {
    // If it was half-way, somebody took the intent away by hand.
    SetHalfWay(frozen, false);
    report.id = transaction_id();
    report.partial = !attempt.options.paths.empty();
    attempt.stale.names = NoteNamesOfHeld(frozen.tree, frozen.base);
    TRY(frozen.JournalFollowed());
    TRY(frozen.journal.DrainUnsynced());
    report.denied = TRY(frozen.journal.ReadDenials()).CountByRule();
    report.depends = TRY(FindDepends(frozen, attempt.options));
    if (!report.depends.empty()) return {};
    auto selection = TRY(Select(frozen, attempt.options));
    if (attempt.options.without_held) {
      report.held = TRY(LeaveHeld(frozen, attempt.options, selection));
      report.partial = report.partial || report.held.left;
    }
    const std::vector<Drift> drifts = TRY(DriftUnder(frozen, selection));
    drifted = !drifts.empty();
    report.conflicts =
        TRY(resolution.Resolve(drifts, attempt.options.conflicts));
    report.resolved = resolution.resolved();
    attempt.stale.inodes = resolution.rewritten();
    if (!report.conflicts.empty()) return {};
    AddDrifted(drifts, attempt.stale);
    if (!resolution.dropped().empty()) {
      const Selection dropped = TRY(
          SelectPaths(frozen, resolution.dropped(), SelectionParents::kApart));
      selection = AllBut(frozen, dropped);
      std::ranges::copy(dropped.inodes,
                        std::back_inserter(attempt.stale.inodes));
      std::ranges::copy(NamesOf(frozen),
                        std::back_inserter(attempt.stale.names));
    }
    std::ranges::copy(resolution.stale_names(),
                      std::back_inserter(attempt.stale.names));
    report.changes =
        selection ? CountChanges(attempt.changes, PathsOf(frozen, *selection))
                  : attempt.changes.size();
    // Beside what is held, times alone are not worth an entry of the history.
    report.nothing = report.changes == 0 && report.held.left;
    if (!report.nothing && !drifted && report.changes == 0) {
      report.nothing = TRY(LeavesBaseAlone(frozen, selection));
    }
    if (report.nothing) return {};
    report.limits = TRY(JudgeCommit(frozen, selection ? &*selection : nullptr,
                                    drifted, attempt.options.accepted));
    if (!attempt.options.without_held) {
      report.held = TRY(FindHeld(frozen, selection ? &*selection : nullptr,
                                 {.rules = attempt.options.accepted,
                                  .paths = attempt.options.accepted_paths}));
    }
    if (AnyStops(report.limits) || report.held.stops()) return {};
    record = std::make_unique<CommitRecord>();
    *record =
        TRY(PrepareCommit(frozen, selection ? &*selection : nullptr, attempt));
  }
  report.id = record->summary.id;
  report.changes = record->summary.changes;
  report.denied = record->summary.denied;
  report.partial = record->summary.kind == TransactionKind::kPartial;
  TRY(report.partial ? FinishPart(frozen, *record, attempt)
                     : FinishWhole(frozen, *record, attempt));
  // Who changed what was touched may have changed what was only looked at.
  if (drifted) attempt.stale.Append(BaseFollower(frozen).Refresh());
  return {};
}

/// Up to the point of no return: nothing of the base is touched.
Result<CommitRecord> StoredWorkspace::PrepareCommit(Frozen& frozen,
                                                    const Selection* selection,
                                                    Attempt& attempt) {
  CommitRecord record;
  record.summary = Ended(TransactionState::kCommitted, attempt.options.message,
                         attempt.report.changes, frozen.journal);
  const bool partial = attempt.report.partial;
  if (partial) {
    record.summary.kind = TransactionKind::kPartial;
    record.summary.of = record.summary.id;
    record.summary.id = TRY(store_->ReserveId(record.summary.ended));
    record.summary.created = record.summary.ended;
    KeepSettledRun(record.summary);
  }
  record.vault = attempt.vault = record.summary.id;
  TRY(Handover(frozen).PinOrphans());
  Vault vault = TRY(committer_.vaults().Make(record.vault));
  CommitPlan plan =
      TRY(PlanCommit(frozen, {.selection = selection,
                              .clones = VaultFiller::CanClone(vault)}));
  // What there was to do, others have undone.
  if (LeavesBaseAlone(plan)) record.summary.changes = 0;
  TRY(committer_.vaults().AddParts(record.vault, plan.mounts, vault));
  const size_t filled = plan.staged.size() + plan.deltas.size();
  const size_t all = filled + plan.steps.size();
  // What fallocate(2) reserved ends with the transaction, and may be needed
  // now.
  if (!partial) filesystem_->promised_space().GiveUp(frozen.journal);
  VaultFiller filler(frozen, vault, [&](size_t done) {
    if (attempt.progress) attempt.progress(done, all);
  });
  record.steps = TRY(filler.Fill(plan));
  if (attempt.progress) {
    committer_.OnProgress(
        [progress = attempt.progress, filled, all](size_t done, size_t) {
          progress(filled + done, all);
        });
  }
  TRY(committer_.CheckPermitted(record));
  if (partial) {
    TRY(PrepareSettlement(frozen, *selection,
                          {.made = filler.made(), .touched = plan.touched},
                          record));
  }
  attempt.report.withheld = std::move(plan.withheld);
  return record;
}

/// How the transaction goes on after a commit of a part of it.
Status StoredWorkspace::PrepareSettlement(Frozen& frozen,
                                          const Selection& selection,
                                          const PartCommit& commit,
                                          CommitRecord& record) {
  Image tables;
  TRY(frozen.journal.Load(tables));
  Change change = TRY(PlanSettlement(frozen, selection, tables, &commit));
  frozen.Sign(Ourselves(), change);
  change.path = record.summary.id;
  EncodeChange(change, record.settlement);
  record.settles_at = Next(frozen.journal.last_lsn());
  return {};
}

void StoredWorkspace::SetHalfWay(Frozen& frozen, bool half_way) {
  if (half_way == IsHalfWay()) return;
  if (half_way) {
    half_way_.emplace();
  } else {
    half_way_.reset();
  }
  frozen.SetHalted(half_way);
  const MutexLock lock(mutex_);
  summary_.state =
      half_way ? TransactionState::kCommitting : TransactionState::kActive;
}

Status StoredWorkspace::PassPointOfNoReturn(Frozen& frozen,
                                            const CommitRecord& record,
                                            Attempt& attempt) {
  if (IsHalfWay()) return {};
  auto passed = WithReserve(
      frozen.journal,
      [&]() {
        end_mutex_.AssertHeld();
        return committer_.PassPointOfNoReturn(record);
      },
      [&] { return !store_->history().HasIntent(); });
  if (passed || store_->history().HasIntent()) {
    attempt.passed();
    SetHalfWay(frozen, true);
  }
  return passed;
}

Status StoredWorkspace::FinishWhole(Frozen& frozen, const CommitRecord& record,
                                    Attempt& attempt) {
  PreparedTransaction prepared =
      TRY(PrepareNext(record.summary, frozen.journal));
  Status done = PassPointOfNoReturn(frozen, record, attempt);
  if (done) done = committer_.CarryOut(record);
  if (!done) {
    store_->Cancel(std::move(prepared));
    return done;
  }
  OpenTransaction next =
      TRY(store_->Succeed(record.summary.id, std::move(prepared)));
  attempt.stale.Append(Handover(frozen).Reset(true));
  SetHalfWay(frozen, false);
  GoOnWith(frozen, std::move(next), attempt.old);
  attempt.vault.clear();
  // What is left to do is left to the next one who looks.
  std::ignore = committer_.Finish(record);
  return {};
}

Status StoredWorkspace::FinishPart(Frozen& frozen, const CommitRecord& record,
                                   Attempt& attempt) {
  TRY(PassPointOfNoReturn(frozen, record, attempt));
  TRY(committer_.CarryOut(record));
  auto settled = SettlePart(frozen, record, attempt);
  // Without an intent it is done: what is left is left to the next one who
  // looks, and another commit needs an intent of its own.
  if (!settled && store_->history().HasIntent()) return settled;
  SetHalfWay(frozen, false);
  return {};
}

Status StoredWorkspace::SettlePart(Frozen& frozen, const CommitRecord& record,
                                   Attempt& attempt) {
  if (!half_way_->settled) {
    half_way_->savepoints.clear();
    for (const Savepoint& savepoint :
         WithoutCalls(frozen.journal.Savepoints())) {
      half_way_->savepoints.push_back(savepoint.name);
    }
    const Change change = TRY(DecodeChange(record.settlement));
    Image tables;
    TRY(frozen.journal.Load(tables));
    TRY(frozen.journal.Settle(change));
    attempt.stale.Append(Handover(frozen).Settle(change, std::move(tables)));
    half_way_->settled = true;
  }
  attempt.report.savepoints = half_way_->savepoints;
  TRY(frozen.journal.Drain());
  return committer_.Finish(record);
}

/// So that the changes of such files count as what is to be committed.
void StoredWorkspace::NoteHeldNames() {
  StaleCaches stale;
  filesystem_->WhileFrozen([&](Frozen& frozen) {
    stale.names = NoteNamesOfHeld(frozen.tree, frozen.base);
  });
  if (!stale.names.empty()) Tell(std::move(stale));
}

Result<PlanReport> StoredWorkspace::PlanOnly(const PlanRequest& request) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  PlanReport report;
  report.id = transaction_id();
  NoteHeldNames();
  const std::vector<NetChange> changes = TRY(Changes(false, {}));
  report.changes = changes.size();
  auto planned = filesystem_->WhileFrozen([&](Frozen& frozen) -> Status {
    const CommitOptions asked{.paths = request.paths,
                              .accepted = request.accepted,
                              .accepted_paths = request.accepted_paths,
                              .without_held = request.without_held};
    auto selection = TRY(Select(frozen, asked));
    report.held = request.without_held
                      ? TRY(LeaveHeld(frozen, asked, selection))
                      : TRY(FindHeld(frozen, selection ? &*selection : nullptr,
                                     {.rules = asked.accepted,
                                      .paths = asked.accepted_paths,
                                      .whole = request.all_held}));
    if (selection) {
      report.changes = CountChanges(changes, PathsOf(frozen, *selection));
    }
    Resolution resolution(frozen);
    const std::vector<Drift> drifts = TRY(DriftUnder(frozen, selection));
    report.conflicts = TRY(resolution.Resolve(drifts, {}));
    if (!report.conflicts.empty()) return {};
    CommitPlan plan =
        TRY(PlanCommit(frozen, {.selection = selection ? &*selection : nullptr,
                                .asks = true}));
    const bool nothing =
        drifts.empty() && report.changes == 0 && LeavesBaseAlone(plan);
    if (nothing) return {};
    report.limits = TRY(JudgeCommit(frozen, selection ? &*selection : nullptr,
                                    !drifts.empty(), request.accepted));
    CommitSteps steps;
    for (const PlannedStep& step : plan.steps) steps.push_back(step.step);
    TRY(CommitRunner(frozen.base, {})
            .CheckPermitted(steps, CommitRunner::Asking::kHarmless));
    report.steps = TRY(DescribeSteps(frozen, plan));
    report.withheld = std::move(plan.withheld);
    return {};
  });
  TRY(std::move(planned));
  return report;
}

}  // namespace txfs

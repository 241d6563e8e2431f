// The part of StoredWorkspace that marks, lists and reverts calls.
#include <algorithm>
#include <utility>

#include "fs/planning/revert.h"
#include "fs/workspace/calls.h"
#include "fs/workspace/stored_workspace.h"

namespace txfs {
namespace {

/// Of hosts that never report an end.
constexpr size_t kMostRunning = 1000;

}  // namespace

StoredWorkspace::CallState& StoredWorkspace::CallsOf(
    const std::shared_ptr<Journal>& journal) {
  if (calls_.journal.lock() != journal) {
    calls_ = {.journal = journal,
              .last = LastCall(journal->Savepoints()),
              .running = {}};
  }
  return calls_;
}

Result<uint64_t> StoredWorkspace::MarkCall(const CallMark& mark) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const CallMark bounded = BoundedMark(mark);
  CallState& calls = CallsOf(filesystem_->journal());
  if (mark.end) return MarkEnd(calls, bounded);
  const uint64_t number = ++calls.last;
  const Savepoint begin = TRY(filesystem_->MarkSavepoint(
      Ourselves(), NameOf({.number = number}), EncodeMark(bounded)));
  calls.running.push_back(
      {number, begin.lsn, bounded.host, bounded.session, bounded.call});
  if (calls.running.size() > kMostRunning) calls.running.pop_front();
  return number;
}

Result<uint64_t> StoredWorkspace::MarkEnd(CallState& calls,
                                          const CallMark& mark) {
  const auto is_meant = [&](const RunningCall& call) {
    return call.host == mark.host && call.session == mark.session &&
           call.call == mark.call;
  };
  const auto found =
      std::find_if(calls.running.rbegin(), calls.running.rend(), is_meant);
  if (found == calls.running.rend()) return uint64_t{0};
  const uint64_t number = found->number;
  TRY(filesystem_->MarkSavepoint(Ourselves(),
                                 NameOf({.number = number, .end = true})));
  calls.running.erase(std::next(found).base());
  return number;
}

void StoredWorkspace::EndNewestCall(const Savepoint& rolled_back) {
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  CallState& calls = CallsOf(journal);
  std::erase_if(calls.running, [&](const RunningCall& call) {
    return call.begin > rolled_back.lsn;
  });
  const std::vector<Savepoint> savepoints = journal->Savepoints();
  const uint64_t newest = CallAt(savepoints, journal->last_lsn());
  if (newest == 0) return;
  std::erase_if(calls.running,
                [&](const RunningCall& call) { return call.number == newest; });
  // Without the mark, later changes count as those of the call.
  std::ignore = filesystem_->MarkSavepoint(
      Ourselves(), NameOf({.number = newest, .end = true}));
}

std::vector<Savepoint> StoredWorkspace::CallMarks() {
  std::vector<Savepoint> marks = filesystem_->journal()->Savepoints();
  std::erase_if(marks, [](const Savepoint& savepoint) {
    return !CallNamed(savepoint.name);
  });
  return marks;
}

namespace {

Result<std::vector<Call>> CallsIn(Journal& journal) {
  CallList list;
  TRY(journal.ReadLog(Lsn{1}, [&](const LogEntry& entry) {
    list.Add(entry);
    return true;
  }));
  return std::move(list).Finish();
}

}  // namespace

Result<std::vector<Call>> StoredWorkspace::Calls() {
  return CallsIn(*filesystem_->journal());
}

Result<CallSpan> StoredWorkspace::SpanOfCall(Journal& journal,
                                             const std::string& wanted) {
  const auto calls = TRY(CallsIn(journal));
  const uint64_t number = TRY(FindCall(calls, wanted));
  const auto span = SpanOf(journal.Savepoints(), number);
  if (span) return *span;
  return Fail(0, "call " + std::to_string(number) + " has no mark any more",
              "`txfs log --calls` lists the calls");
}

Result<CallSpan> StoredWorkspace::FindSpan(const std::string& wanted) {
  return SpanOfCall(*filesystem_->journal(), wanted);
}

namespace {

/// The calls behind `dependences`, among the changes after `until`.
Result<std::vector<BuiltOn>> CallsBehind(
    Journal& journal, Lsn until, const std::vector<Dependence>& dependences) {
  struct Hit {
    Lsn lsn;
    size_t dependence;
  };
  std::vector<Hit> hits;
  TRY(journal.ReadLog(Lsn{Raw(until) + 1}, [&](const LogEntry& entry) {
    const Change& change = entry.change;
    if (change.op == Op::kRollback) {
      std::erase_if(
          hits, [&](const Hit& hit) { return hit.lsn > Lsn{change.offset}; });
    }
    for (size_t i = 0; i < dependences.size(); ++i) {
      if (dependences[i].IsOf(change)) hits.push_back({entry.lsn, i});
    }
    return true;
  }));
  std::vector<BuiltOn> built_on;
  for (const Dependence& dependence : dependences) {
    built_on.push_back({dependence.path, dependence.reason, {}});
  }
  const std::vector<Savepoint> savepoints = journal.Savepoints();
  for (const Hit& hit : hits) {
    std::vector<uint64_t>& calls = built_on[hit.dependence].calls;
    const uint64_t call = CallAt(savepoints, hit.lsn);
    if (call != 0 && std::ranges::find(calls, call) == calls.end()) {
      calls.push_back(call);
    }
  }
  return built_on;
}

}  // namespace

Result<RevertReport> StoredWorkspace::RevertCall(const std::string& wanted) {
  const MutexLock ending(end_mutex_);
  TRY(RefuseHalfWay());
  const std::shared_ptr<Journal> journal = filesystem_->journal();
  const CallSpan span = TRY(SpanOfCall(*journal, wanted));
  RevertReport report{.number = span.number};
  // Most of what is to be drained need not be while all is frozen.
  TRY(journal->Drain());
  std::vector<Dependence> dependences;
  auto reverted = filesystem_->WhileFrozen([&](Frozen& frozen) {
    end_mutex_.AssertHeld();
    return RevertFrozen(frozen, span, report, dependences);
  });
  const StaleCaches stale = TRY(std::move(reverted));
  if (!dependences.empty()) {
    report.built_on = TRY(CallsBehind(*journal, span.until->lsn, dependences));
  }
  if (report.as != 0) TellAll(stale);
  return report;
}

Result<StaleCaches> StoredWorkspace::RevertFrozen(
    Frozen& frozen, const CallSpan& span, RevertReport& report,
    std::vector<Dependence>& built_on) {
  TRY(frozen.JournalFollowed());
  TRY(frozen.journal.Drain());
  Image now;
  TRY(frozen.journal.Load(now));
  const Lsn until = span.until ? span.until->lsn : kNoLsn;
  const Rewind part = TRY(frozen.journal.PlanRewind(span.since.lsn, until));
  Rewind later;
  if (span.until) later = TRY(frozen.journal.PlanRewind(until, kNoLsn));
  RevertPlan plan = PlanRevert(frozen.tree, part, later, now);
  built_on = std::move(plan.built_on);
  if (!built_on.empty() || plan.paths.empty()) return StaleCaches();

  CallState& calls = CallsOf(frozen.SharedJournal());
  const uint64_t number = ++calls.last;
  const CallMark mark{
      .host = "txfs",
      .call = "revert-" + std::to_string(number),
      .tool = "revert",
      .command = "txfs revert --call " + std::to_string(span.number)};
  TRY(frozen.Mark(Ourselves(), NameOf({.number = number}), EncodeMark(mark)));
  Change change{.op = Op::kRevert,
                .path = span.since.name,
                .length = plan.paths.size(),
                .edits = std::move(plan.edits)};
  frozen.Sign(Ourselves(), change);
  StaleCaches stale = TRY(frozen.Revert(change, plan.rewind));
  report.as = number;
  report.changes = plan.paths.size();
  std::ignore =
      frozen.Mark(Ourselves(), NameOf({.number = number, .end = true}), "");
  return stale;
}

}  // namespace txfs

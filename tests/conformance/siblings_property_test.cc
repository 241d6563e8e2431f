#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"
#include "tests/conformance/turns.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

constexpr ViewRules kAnyInodes{.ino = false, .ctime = false};

/// Some work of one of the transactions, and what becomes of it.
struct Phase {
  vector<Step> steps;
  bool second = false;
  Turn turn = Turn::kNothing;
  OnConflict way = OnConflict::kFail;
  size_t choice = 0;
};

std::ostream& operator<<(std::ostream& out, const Phase& phase) {
  static const vector<const char*> kWays = {"fail", "mine", "theirs", "merge"};
  out << (phase.second ? "b: " : "a: ");
  for (const Step& step : phase.steps) out << step << "; ";
  return out << phase.turn << ' ' << kWays[static_cast<size_t>(phase.way)]
             << ' ' << phase.choice << '\n';
}

rc::Gen<Phase> AnyPhase() {
  return rc::gen::build<Phase>(
      rc::gen::set(&Phase::steps,
                   rc::gen::container<vector<Step>>(AnyStep(StepModes(false)))),
      rc::gen::set(&Phase::second),
      rc::gen::set(&Phase::turn, AnyTurn({{2, Turn::kNothing},
                                          {2, Turn::kSavepoint},
                                          {2, Turn::kRollback},
                                          {8, Turn::kCommit},
                                          {2, Turn::kCommitPart},
                                          {1, Turn::kDiscard},
                                          {2, Turn::kDiscardPart},
                                          {3, Turn::kUndo},
                                          {2, Turn::kRemount}})),
      rc::gen::set(&Phase::way,
                   rc::gen::element(OnConflict::kFail, OnConflict::kMine,
                                    OnConflict::kTheirs, OnConflict::kMerge)),
      rc::gen::set(&Phase::choice, rc::gen::inRange<size_t>(0, 1000)));
}

/// Stands for a merge: what matters here is that something else comes out.
Result<std::optional<MergedText>> Join(const MergeInput& input) {
  if (input.ours.empty()) return std::optional<MergedText>();
  return std::optional(
      MergedText{.content = string(input.ours) + string(input.theirs)});
}

void Demand(const string& what, const Status& done) {
  if (!done) RC_LOG() << what << ": " << done.error().ToString() << '\n';
  RC_ASSERT(done.has_value());
}
template <class T>
T Demand(const string& what, Result<T> result) {
  Demand(what, result ? Status() : std::unexpected(result.error()));
  return std::move(*result);
}
void DemandNone(const string& when, const string& problems) {
  if (!problems.empty()) RC_LOG() << "after " << when << ":\n" << problems;
  RC_ASSERT(problems.empty());
}

/// One of the transactions.
struct Side {
  string name;
  std::unique_ptr<CoreDriver> driver;
  std::unique_ptr<StepRunner> runner;
  vector<std::pair<string, TreeView>> savepoints;
  /// Nobody else changed the base since the transaction, or the oldest of its
  /// savepoints, began.
  bool alone = true;

  [[nodiscard]] Workspace& workspace() const { return driver->workspace(); }
};

/// Two transactions on one workspace, which get in each other's way.
class Siblings {
 public:
  explicit Siblings(bool keep_lookups) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    // Too large for a pre-image, and what is written to it is so in place.
    base_.HardLink("b/b", "b/d/b");
    base_.SetTimes();
    for (const string name : {"a", "b"}) {
      Side& side = sides_.at(name == "a" ? 0 : 1);
      side.name = name;
      side.driver = Demand(
          "begin", CoreDriver::Start(base_.root(),
                                     {.journal = {.intake_bytes = 256 << 10,
                                                  .background_drain = false},
                                      .keep_lookups = keep_lookups,
                                      .name = name}));
      side.runner = std::make_unique<StepRunner>(*side.driver);
    }
    base_view_ = Base();
  }
  ~Siblings() {
    for (Side& side : sides_) side.runner->DropAll();
  }
  Siblings(const Siblings&) = delete;
  Siblings& operator=(const Siblings&) = delete;

  void Live(const Phase& phase) {
    Side& side = sides_.at(phase.second ? 1 : 0);
    const Side& other = sides_.at(phase.second ? 0 : 1);
    const TreeView others = View(*other.driver);
    for (const Step& step : phase.steps) side.runner->Run(step);
    side.runner->DropAll();
    DemandSame("work", base_view_, Base(), {});
    DemandSame("work, the other's mount", others, View(*other.driver), {});
    const auto changed = ChangedPaths(other);
    Take(side, phase);
    DemandIsolated(other, changed, others);
    DemandNone("it, in the store", FindProblems(base_.root()));
    for (const Side& each : sides_) DemandToldApart(each);
  }

 private:
  void Take(Side& side, const Phase& phase) {
    switch (phase.turn) {
      case Turn::kNothing:
        return;
      case Turn::kSavepoint: {
        const string name = "s" + std::to_string(++names_);
        const TreeView shown = View(*side.driver);
        Demand("savepoint", side.driver->MakeSavepoint(name));
        side.savepoints.emplace_back(name, shown);
        return DemandSame("a savepoint", shown, View(*side.driver), {});
      }
      case Turn::kRollback:
        return Rollback(side, phase.choice);
      case Turn::kCommit:
        return Commit(side, {.conflicts = {phase.way, Join}});
      case Turn::kCommitPart:
        return CommitPart(side, phase.choice);
      case Turn::kDiscard:
        Demand("discard", side.driver->Discard());
        Begin(side);
        return DemandSame("a discard", base_view_, View(*side.driver),
                          kAnyInodes);
      case Turn::kDiscardPart:
        return DiscardPart(side, phase.choice);
      case Turn::kUndo:
        return Undo(side);
      case Turn::kRemount:
        return Remount(side);
    }
  }

  static void Begin(Side& side) {
    side.savepoints.clear();
    side.alone = true;
  }

  void Rollback(Side& side, size_t choice) {
    if (side.savepoints.empty()) return;
    side.savepoints.resize(1 + choice % side.savepoints.size());
    const auto& [name, shown] = side.savepoints.back();
    Demand("rollback", side.driver->Rollback(name));
    if (!side.alone) return;
    DemandSame("a rollback", shown, View(*side.driver), kAnyInodes);
  }

  void Remount(Side& side) {
    const TreeView shown = View(*side.driver);
    Demand("remount", side.driver->Remount());
    if (!side.alone) return;
    DemandSame("a remount", shown, View(*side.driver), kAnyInodes);
  }

  void Commit(Side& side, const CommitOptions& options) {
    const TreeView shown = View(*side.driver);
    const vector<NetChange> changes =
        Demand("diff", side.workspace().Changes(true));
    const auto committed = side.workspace().Commit(options);
    const TreeView after = Base();
    if (!committed && !options.paths.empty() && !side.alone) {
      // What hides what others made is no change of that.
      return DemandSame("nothing, the base", base_view_, after, {});
    }
    const CommitReport report = Demand("commit", committed);
    if (!report.conflicts.empty()) {
      RC_ASSERT(!side.alone);
      RC_LOG() << NoConflicts(report.conflicts).error().ToString() << '\n';
      RC_ASSERT(options.conflicts.on_conflict != OnConflict::kTheirs);
      DemandSame("a conflict, the base", base_view_, after, {});
      return DemandSame("a conflict", shown, View(*side.driver), kAnyInodes);
    }
    RC_ASSERT(!side.alone || report.resolved.empty());
    if (report.nothing) {
      DemandSame("nothing, the base", base_view_, after, {});
      RC_ASSERT(changes.empty() || !report.resolved.empty() ||
                !options.paths.empty());
      return;
    }
    // Where all of it was dropped, nothing is to be undone.
    const bool undoable =
        Demand("show", side.workspace().store().history().Read(report.id))
            .undoable;
    if (!undoable) DemandSame("nothing, the base", base_view_, after, {});
    const TreeView before = std::exchange(base_view_, after);
    if (options.paths.empty()) {
      DemandSame("a commit", after, View(*side.driver), kAnyInodes);
      if (report.resolved.empty()) DemandDone(changes, before, after);
      Begin(side);
    } else {
      side.savepoints.clear();
    }
    if (!undoable) return;
    before_ = before;
    undoable_ = true;
    TellOthers(side);
  }

  void CommitPart(Side& side, size_t choice) {
    const string path = AnyPath(side, choice);
    if (path.empty()) return;
    RC_LOG() << "part: " << path << '\n';
    Commit(side, {.paths = {path}, .conflicts = {}});
  }

  void DiscardPart(Side& side, size_t choice) {
    const string path = AnyPath(side, choice);
    if (path.empty()) return;
    RC_LOG() << "part: " << path << '\n';
    const auto discarded = side.workspace().DiscardPart({path});
    if (side.alone) Demand("discard of a part", discarded);
    side.savepoints.clear();
    DemandSame("discard of a part, the base", base_view_, Base(), {});
  }

  void Undo(Side& side) {
    if (!undoable_) return;
    Demand("undo", side.driver->Undo(""));
    undoable_ = false;
    base_view_ = Base();
    DemandSame("an undo", before_, base_view_, {.ctime = false});
    side.alone = false;
    side.savepoints.clear();
    TellOthers(side);
  }

  void TellOthers(const Side& side) {
    for (Side& each : sides_) {
      if (&each == &side) continue;
      Demand("refresh", each.workspace().Refresh());
      each.alone = false;
    }
  }

  static string AnyPath(const Side& side, size_t choice) {
    const auto changes = Demand("diff", side.workspace().Changes(true));
    if (changes.empty()) return "";
    const NetChange& change = changes[choice % changes.size()];
    string path = change.path;
    if (choice % 3 == 1 && !change.old_path.empty()) path = change.old_path;
    const size_t slash = path.find('/');
    if (choice % 5 == 1 && slash != string::npos) path.resize(slash);
    return path;
  }

  /// A commit does what diff said: nothing else came, went, or is another.
  static void DemandDone(const vector<NetChange>& changes,
                         const TreeView& before, const TreeView& after) {
    DemandToldApart("the commit of what diff said", changes, {}, before, after);
  }

  /// The mount is the base with what diff says, but where there is a conflict:
  /// there it shows the transaction's side, by all names.
  void DemandToldApart(const Side& side) {
    const string wrong = FindWrongStatus(side.workspace());
    if (!wrong.empty()) RC_LOG() << side.name << ": " << wrong;
    RC_ASSERT(wrong.empty());
    // A diff takes into account what others made of the base, which may show
    // more, and lists the names that were looked up.
    Demand("diff", side.workspace().Changes(false));
    View(*side.driver);
    const auto changes = Demand("diff", side.workspace().Changes(true));
    const TreeView shown = View(*side.driver);
    std::set<string> disputed;
    for (const Conflict& conflict :
         Demand("status", side.workspace().FindConflicts())) {
      disputed.insert(conflict.path);
      for (const TreeView* view : {&shown, &std::as_const(base_view_)}) {
        const auto found = view->find(conflict.path);
        if (found == view->end()) continue;
        for (const auto& [path, file] : *view) {
          if (file.ino == found->second.ino) disputed.insert(path);
        }
      }
    }
    if (!side.alone) Emptied(shown, disputed);
    DemandToldApart(side.name + "'s mount and diff", changes, disputed,
                    base_view_, shown);
  }

  /// Without what is in a directory that was renamed.
  static std::set<string> ChangedPaths(const Side& side) {
    std::set<string> paths;
    for (const NetChange& change :
         Demand("diff", side.workspace().Changes(false))) {
      if (change.kind != ChangeKind::kDeleted) paths.insert(change.path);
    }
    return paths;
  }

  /// What was changed and still is has the content that it had.
  static void DemandIsolated(const Side& side, const std::set<string>& changed,
                             const TreeView& before) {
    const TreeView after = View(*side.driver);
    string problems;
    for (const string& path : ChangedPaths(side)) {
      const auto was = before.find(path);
      const auto is = after.find(path);
      const bool compares = changed.contains(path) && was != before.end() &&
                            is != after.end() && S_ISREG(was->second.mode) &&
                            S_ISREG(is->second.mode);
      if (!compares || was->second.content == is->second.content) continue;
      problems += path + ": \"" + was->second.content.substr(0, 40) +
                  "\" became \"" + is->second.content.substr(0, 40) + "\"\n";
    }
    DemandNone("the other's end, in " + side.name, problems);
  }

  /// Directories with nothing but such in them. One that the base has no more,
  /// and in which the transaction has only deleted, is shown and no change.
  static void Emptied(const TreeView& view, std::set<string>& emptied) {
    for (const auto& [path, file] : view) {
      const string below = path + "/";
      bool empty = S_ISDIR(file.mode);
      for (auto at = view.lower_bound(below);
           empty && at != view.end() && at->first.starts_with(below); ++at) {
        empty = S_ISDIR(at->second.mode);
      }
      if (empty) emptied.insert(path);
    }
  }

  static void DemandToldApart(const string& when,
                              const vector<NetChange>& changes,
                              const std::set<string>& except, TreeView before,
                              TreeView after) {
    std::set<string> made, told = except;
    for (const NetChange& change : changes) {
      told.insert({change.path, change.old_path});
      if (change.kind != ChangeKind::kDeleted) made.insert(change.path);
    }
    string problems;
    for (const NetChange& change : changes) {
      if (made.contains(change.path) == after.contains(change.path)) continue;
      problems += "diff: " + std::to_string(static_cast<int>(change.kind)) +
                  " " + change.old_path + " " + change.path + "\n";
    }
    for (TreeView* const view : {&before, &after}) {
      for (const string& path : told) view->erase(path);
      // Links are counted here and there.
      for (auto& [path, file] : *view) file.nlink = 0;
    }
    problems +=
        Compare(before, after, {.ino = false, .ctime = false, .mtime = false});
    DemandNone(when, problems);
  }

  static void DemandSame(const string& when, const TreeView& expected,
                         const TreeView& actual, const ViewRules& rules) {
    DemandNone(when, Compare(expected, actual, rules));
  }
  TreeView Base() {
    PosixDriver plain(base_.root());
    return View(plain);
  }
  static TreeView View(Driver& driver) {
    return Demand("view", ViewWithoutStore(driver));
  }

  TempDir scratch_;
  BaseTree base_;
  std::array<Side, 2> sides_;
  TreeView base_view_, before_;
  bool undoable_ = false;  ///< the newest commit: it led from before_
  int names_ = 0;
};

TEST(SiblingsPropertyTest, WhatTheySeeIsTheBaseAndWhatTheySayTheyChanged) {
  SetCases(Scaled(30), 12);
  EXPECT_TRUE(rc::check("phases of two transactions", [] {
    const auto phases = *rc::gen::container<vector<Phase>>(14, AnyPhase());
    Siblings siblings(*rc::gen::arbitrary<bool>());
    for (const Phase& phase : phases) siblings.Live(phase);
  }));
}

}  // namespace
}  // namespace txfs::testing

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"

namespace txfs {

std::ostream& operator<<(std::ostream& out, OnConflict way) {
  return out << std::array{"fail", "mine", "theirs", "merge"}.at(
             static_cast<size_t>(way));
}

}  // namespace txfs

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// Stands for a merge: what matters here is that something else comes out.
Result<std::optional<MergedText>> Join(const MergeInput& input) {
  if (input.ours.empty()) return std::optional<MergedText>();
  return std::optional(
      MergedText{.content = string(input.ours) + string(input.theirs)});
}

/// A transaction and, beneath it, somebody who changes the base.
class TwoSides {
 public:
  explicit TwoSides(bool keep_lookups)
      : options_{.keep_lookups = keep_lookups},
        base_(scratch_.path() + "/ws"),
        plain_(base_.root()) {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    Start();
    initial_ = View(plain_);
  }

  void Ours(const vector<Step>& steps) { Run(steps, *driver_); }
  void Theirs(const vector<Step>& steps) { Run(steps, plain_); }
  void Remount() { Demand("remount", driver_->Remount()); }

  /// Whatever both did: a commit lists conflicts and touches nothing, or what
  /// it made is what the mount shows and can be taken back exactly.
  CommitReport Commit(OnConflict on_conflict) {
    Demand("the status", FindWrongStatus(workspace()));
    const TreeView theirs = View(plain_);
    const auto report = workspace().Commit(
        {.conflicts = {.on_conflict = on_conflict, .merge = Join}});
    if (!report) RC_LOG() << report.error().ToString() << '\n';
    RC_ASSERT(report.has_value());
    Demand("the store", FindProblems(base_.root()));
    if (!report->conflicts.empty()) {
      Demand("the base after a conflict", Compare(theirs, View(plain_), {}));
      return *report;
    }
    // What only they touched the mount need not know yet.
    Demand("refresh", workspace().Refresh());
    const TreeView base = View(plain_);
    TreeView shown = View(*driver_);
    // The number of a directory that they moved may differ (docs/design.md,
    // "Inode numbers").
    for (auto& [path, file] : shown) {
      const auto there = base.find(path);
      if (there == base.end() || !S_ISDIR(file.mode)) continue;
      file.ino = there->second.ino;
    }
    Demand(
        "the mount after the commit",
        Compare(base, shown, {.ino = !options_.keep_lookups, .ctime = false}));
    return *report;
  }

  void Undo() {
    const auto undone = workspace().Undo("");
    if (!undone) RC_LOG() << undone.error().ToString() << '\n';
    RC_ASSERT(undone.has_value() && undone->conflicts.empty());
    Demand("the store", FindProblems(base_.root()));
  }

  bool CanUndo(const string& id) {
    const auto commit = workspace().store().history().Read(id);
    RC_ASSERT(commit.has_value());
    return commit->undoable;
  }

  TreeView Base() { return View(plain_); }
  TreeView Mount() { return View(*driver_); }
  [[nodiscard]] const TreeView& initial() const { return initial_; }

  static void Demand(const string& when, const string& differences) {
    if (!differences.empty()) RC_LOG() << when << ":\n" << differences;
    RC_ASSERT(differences.empty());
  }

 private:
  void Start() {
    auto started = CoreDriver::Start(base_.root(), options_);
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
  }
  Workspace& workspace() {
    return static_cast<CoreDriver&>(*driver_).workspace();
  }
  static void Run(const vector<Step>& steps, Driver& driver) {
    StepRunner runner(driver);
    for (const Step& step : steps) static_cast<void>(runner.Run(step));
    runner.DropAll();
  }
  static void Demand(const string& what, const Status& status) {
    if (!status) RC_LOG() << what << ": " << status.error().ToString() << '\n';
    RC_ASSERT(status.has_value());
  }
  static TreeView View(Driver& driver) {
    auto view = ViewTree(driver);
    if (!view) RC_LOG() << view.error().ToString() << '\n';
    RC_ASSERT(view.has_value());
    return std::move(*view);
  }

  const CoreOptions options_;
  TempDir scratch_;
  BaseTree base_;
  PosixDriver plain_;
  std::unique_ptr<Driver> driver_;
  TreeView initial_;
};

/// What is lost when one side's change of a file is not in the outcome.
struct Content {
  mode_t type = 0;
  string content;
  bool operator==(const Content&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Content& content) {
  return out << std::oct << content.type << std::dec << " \""
             << content.content.substr(0, 40) << '"';
}

Content At(const TreeView& view, const string& path) {
  const auto found = view.find(path);
  if (found == view.end()) return {};
  return {found->second.mode & S_IFMT, found->second.content};
}

/// Every path is as the side that changed it has it.
void DemandNothingLost(const TreeView& before, const TreeView& ours,
                       const TreeView& theirs, const TreeView& merged) {
  TreeView all = before;
  for (const TreeView* view : {&ours, &theirs, &merged}) {
    all.insert(view->begin(), view->end());
  }
  for (const auto& [path, view] : all) {
    // What happens to a file by another name shows at this one.
    if (view.nlink > 1 && !S_ISDIR(view.mode)) continue;
    const Content was = At(before, path), mine = At(ours, path),
                  other = At(theirs, path);
    const Content& expected = mine == was ? other : mine;
    const bool both = mine != was && other != was && mine != other;
    if (both || At(merged, path) != expected) {
      RC_LOG() << (both ? "no conflict was found at " : "lost at ") << path
               << ": it was " << was << ", ours is " << mine << ", theirs "
               << other << ", the outcome " << At(merged, path) << '\n';
    }
    RC_ASSERT(!both && At(merged, path) == expected);
  }
}

/// Two sides: each need do little.
constexpr int kMaxSteps = 24;

auto Steps() {
  return rc::gen::container<vector<Step>>(AnyStep(StepModes(false)));
}

TEST(ConflictPropertyTest, WhateverBothSidesDidACommitIsWholeOrNothing) {
  SetCases(Scaled(100), kMaxSteps);
  EXPECT_TRUE(rc::check("ours, theirs, commit in some way, undo", [&] {
    const bool keep_lookups = *rc::gen::arbitrary<bool>();
    const bool remounts = *rc::gen::arbitrary<bool>();
    const auto way = *rc::gen::element(OnConflict::kFail, OnConflict::kMine,
                                       OnConflict::kTheirs, OnConflict::kMerge);
    TwoSides sides(keep_lookups);
    sides.Ours(*Steps());
    if (remounts) sides.Remount();
    sides.Theirs(*Steps());
    const TreeView theirs = sides.Base();
    const CommitReport report = sides.Commit(way);
    if (!report.conflicts.empty() || report.nothing) return;
    // Where all of ours was dropped nothing is to be undone.
    if (!sides.CanUndo(report.id)) {
      return TwoSides::Demand("the base, which was left alone",
                              Compare(theirs, sides.Base(), {.ctime = false}));
    }
    sides.Undo();
    TwoSides::Demand(
        "the base after undo",
        Compare(theirs, sides.Base(), {.ctime = false, .mtime = false}));
  }));
}

TEST(ConflictPropertyTest, WithoutAConflictNothingIsLost) {
  SetCases(Scaled(100), kMaxSteps);
  // What one side moves, or gives another name, takes the other side's changes
  // along: paths say nothing then.
  const auto moves = [](const Step& step) {
    return step.kind == StepKind::kRename ||
           step.kind == StepKind::kRenameNoReplace ||
           step.kind == StepKind::kExchange || step.kind == StepKind::kLink;
  };
  const auto stays = rc::gen::map(Steps(), [&](vector<Step> steps) {
    std::erase_if(steps, moves);
    return steps;
  });
  EXPECT_TRUE(rc::check("ours, theirs, commit", [&] {
    TwoSides sides(*rc::gen::arbitrary<bool>());
    const vector<Step> our_steps = *stays, their_steps = *stays;
    sides.Ours(our_steps);
    const TreeView ours = sides.Mount();
    sides.Theirs(their_steps);
    const TreeView theirs = sides.Base();
    if (!sides.Commit(OnConflict::kFail).conflicts.empty()) return;
    DemandNothingLost(sides.initial(), ours, theirs, sides.Base());
  }));
}

}  // namespace
}  // namespace txfs::testing

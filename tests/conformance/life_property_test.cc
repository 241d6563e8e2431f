#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"
#include "tests/conformance/turns.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

constexpr ViewRules kAnyInodes{.ino = false, .ctime = false};

/// Some work and what becomes of it.
struct Phase {
  std::vector<Step> steps;
  Turn turn = Turn::kNothing;
  size_t choice = 0;
};

std::ostream& operator<<(std::ostream& out, const Phase& phase) {
  for (const Step& step : phase.steps) out << step << "; ";
  return out << phase.turn << ' ' << phase.choice << '\n';
}

rc::Gen<Phase> AnyPhase() {
  return rc::gen::build<Phase>(
      rc::gen::set(&Phase::steps, rc::gen::container<std::vector<Step>>(
                                      AnyStep(StepModes(false)))),
      rc::gen::set(&Phase::turn, AnyTurn({{1, Turn::kNothing},
                                          {2, Turn::kSavepoint},
                                          {2, Turn::kRollback},
                                          {2, Turn::kCommit},
                                          {6, Turn::kCommitPart},
                                          {1, Turn::kDiscard},
                                          {3, Turn::kDiscardPart},
                                          {2, Turn::kUndo},
                                          {2, Turn::kRemount}})),
      rc::gen::set(&Phase::choice, rc::gen::inRange<size_t>(0, 1000)));
}

/// A workspace in which one transaction follows another, and all that may
/// become of one, in any order.
class Life {
 public:
  explicit Life(bool keep_lookups) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = CoreDriver::Start(
        base_.root(),
        {.journal = {.intake_bytes = 256 << 10, .background_drain = false},
         .keep_lookups = keep_lookups});
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
    runner_ = std::make_unique<StepRunner>(*driver_);
    base_view_ = Base();
  }
  ~Life() { runner_->DropAll(); }
  Life(const Life&) = delete;
  Life& operator=(const Life&) = delete;

  void Live(const Phase& phase) {
    for (const Step& step : phase.steps) runner_->Run(step);
    runner_->DropAll();
    shown_ = View(*driver_);
    DemandSame("the base", base_view_, Base(), {});
    Take(phase.turn, phase.choice);
    const std::string problems = FindProblems(base_.root());
    if (!problems.empty()) RC_LOG() << problems;
    RC_ASSERT(problems.empty());
  }

 private:
  void Take(Turn turn, size_t choice) {
    switch (turn) {
      case Turn::kNothing:
        return;
      case Turn::kSavepoint: {
        const std::string name = "s" + std::to_string(++names_);
        Demand("savepoint", driver_->MakeSavepoint(name));
        savepoints_.emplace_back(name, shown_);
        return DemandShown("a savepoint");
      }
      case Turn::kRollback:
        return Rollback(choice);
      case Turn::kCommit:
        return Commit();
      case Turn::kCommitPart:
        return CommitPart(choice);
      case Turn::kDiscard:
        Demand("discard", driver_->Discard());
        savepoints_.clear();
        shown_ = base_view_;
        return DemandShown("a discard");
      case Turn::kDiscardPart:
        return DiscardPart(choice);
      case Turn::kUndo:
        return Undo();
      case Turn::kRemount:
        Demand("remount", driver_->Remount());
        return DemandShown("a remount");
    }
  }

  void Rollback(size_t choice) {
    if (savepoints_.empty()) return;
    savepoints_.resize(1 + choice % savepoints_.size());
    Demand("rollback", driver_->Rollback(savepoints_.back().first));
    shown_ = savepoints_.back().second;
    DemandShown("a rollback");
  }

  void CommitPart(size_t choice) {
    const std::string path = AnyPath(choice);
    if (path.empty()) return;
    RC_LOG() << "part: " << path << '\n';
    const auto report = driver_->workspace().Commit({.paths = {path}});
    Demand("commit of a part",
           report ? Status() : std::unexpected(report.error()));
    Demand("commit of a part", NoConflicts(report->conflicts));
    savepoints_.clear();
    undoable_ = false;
    DemandShown("the commit of " + path);
    DemandKept(choice);
    base_view_ = Base();
  }

  void DiscardPart(size_t choice) {
    const std::string path = AnyPath(choice);
    if (path.empty()) return;
    RC_LOG() << "part: " << path << '\n';
    const auto discarded = driver_->workspace().DiscardPart({path});
    Demand("discard of a part",
           discarded ? Status() : std::unexpected(discarded.error()));
    savepoints_.clear();
    shown_ = View(*driver_);
    DemandKept(choice);
  }

  /// What is shown is what the journal says, too.
  void DemandKept(size_t choice) {
    if (choice < 500) return;
    Demand("remount", driver_->Remount());
    DemandShown("a remount that follows the end of a part");
  }

  void Commit() {
    const auto report = driver_->workspace().Commit({.message = "all"});
    Demand("commit", report ? Status() : std::unexpected(report.error()));
    Demand("commit", NoConflicts(report->conflicts));
    DemandShown("a commit");
    if (report->nothing) return;
    savepoints_.clear();
    before_ = std::exchange(base_view_, Base());
    undoable_ = true;
    DemandSame("a commit, the base", shown_, base_view_, kAnyInodes);
  }

  void Undo() {
    Commit();
    // Else it would take the savepoints along, or not, with what they are of.
    if (!undoable_ || !savepoints_.empty()) return;
    Demand("undo", driver_->Undo(""));
    undoable_ = false;
    base_view_ = Base();
    DemandSame("an undo", before_, base_view_, {.ctime = false});
    shown_ = base_view_;
    DemandShown("an undo");
  }

  std::string AnyPath(size_t choice) {
    const auto changes = driver_->workspace().Changes(true);
    RC_ASSERT(changes.has_value());
    if (changes->empty()) return "";
    const NetChange& change = (*changes)[choice % changes->size()];
    std::string path = change.path;
    if (choice % 3 == 1 && !change.old_path.empty()) path = change.old_path;
    const size_t slash = path.find('/');
    if (choice % 5 == 1 && slash != std::string::npos) path.resize(slash);
    return path;
  }

  void DemandShown(const std::string& when) {
    DemandSame(when, shown_, View(*driver_), kAnyInodes);
  }
  static void DemandSame(const std::string& when, const TreeView& expected,
                         const TreeView& actual, const ViewRules& rules) {
    const std::string differences = Compare(expected, actual, rules);
    if (!differences.empty())
      RC_LOG() << "after " << when << ":\n" << differences;
    RC_ASSERT(differences.empty());
  }
  static void Demand(const std::string& what, const Status& done) {
    if (!done) RC_LOG() << what << ": " << done.error().ToString() << '\n';
    RC_ASSERT(done.has_value());
  }
  TreeView Base() {
    PosixDriver plain(base_.root());
    return View(plain);
  }
  static TreeView View(Driver& driver) {
    auto view = ViewWithoutStore(driver);
    if (!view) RC_LOG() << view.error().ToString() << '\n';
    RC_ASSERT(view.has_value());
    return std::move(*view);
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
  std::unique_ptr<StepRunner> runner_;
  TreeView base_view_, shown_, before_;
  bool undoable_ = false;  ///< the newest commit: it led from before_
  std::vector<std::pair<std::string, TreeView>> savepoints_;
  int names_ = 0;
};

TEST(LifePropertyTest, WhatBecomesOfWorkIsWhatWasSaid) {
  SetCases(Scaled(15));
  EXPECT_TRUE(rc::check("phases of work", [] {
    const auto phases = *rc::gen::container<std::vector<Phase>>(12, AnyPhase());
    Life life(*rc::gen::arbitrary<bool>());
    for (const Phase& phase : phases) life.Live(phase);
  }));
}

}  // namespace
}  // namespace txfs::testing

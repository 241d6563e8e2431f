#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "fs/vault/vaults.h"
#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

/// A workspace whose base is looked at after each commit and undo.
class Looked {
 public:
  Looked() : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = CoreDriver::Start(
        base_.root(),
        {.journal = {.intake_bytes = 256 << 10, .background_drain = false}});
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
  }

  /// The base, with inode numbers.
  TreeView Base() {
    PosixDriver plain(base_.root());
    return View(plain);
  }

  void WorkAndCommit(const std::vector<Step>& steps) {
    StepRunner runner(*driver_);
    for (const Step& step : steps) runner.Run(step);
    runner.DropAll();
    // A commit of nothing would leave nothing to undo.
    Demand("mark", driver_->WriteFile("mark", std::to_string(++commits_)));
    const TreeView worked = View(*driver_);
    // Forgets what was looked at.
    Demand("remount", driver_->Remount());
    Demand("commit", driver_->Commit());
    // The trash may hold names of files of the base.
    Demand("remount", driver_->Remount());
    DemandSame("commit", worked, {.ino = false, .ctime = false});
  }

  void UndoTo(const TreeView& expected, const std::string& id = "") {
    Demand("undo", driver_->Undo(id));
    DemandSame("undo", expected, {.ctime = false});
  }

  std::string NewestEnded() {
    const auto ids = driver_->workspace().store().history().Ids();
    RC_ASSERT(ids.has_value());
    return ids->back();
  }

 private:
  static void Demand(const std::string& what, const Status& done) {
    if (!done) RC_LOG() << what << ": " << done.error().ToString() << '\n';
    RC_ASSERT(done.has_value());
  }

  void DemandSame(const std::string& when, const TreeView& expected,
                  const ViewRules& rules) {
    PosixDriver plain(base_.root());
    for (Driver* driver :
         {static_cast<Driver*>(&plain), static_cast<Driver*>(driver_.get())}) {
      const std::string differences = Compare(expected, View(*driver), rules);
      if (!differences.empty()) {
        RC_LOG() << (driver == &plain ? "the base" : "the view") << " after "
                 << when << ":\n"
                 << differences;
      }
      RC_ASSERT(differences.empty());
    }
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
  int commits_ = 0;
};

TEST(UndoTest, RestoresTheBaseAsItWas) {
  SetCases(Scaled(20));
  const auto steps =
      rc::gen::container<std::vector<Step>>(AnyStep(StepModes(false)));
  EXPECT_TRUE(rc::check("commit, commit, undo and its undo, undo both", [&] {
    const auto first = *steps, second = *steps;
    Looked workspace;
    const TreeView original = workspace.Base();
    workspace.WorkAndCommit(first);
    const TreeView between = workspace.Base();
    workspace.WorkAndCommit(second);
    const TreeView last = workspace.Base();
    workspace.UndoTo(between);
    workspace.UndoTo(last, workspace.NewestEnded());
    workspace.UndoTo(between, workspace.NewestEnded());
    workspace.UndoTo(original);
  }));
}

TEST(UndoTest, RestoresTheBaseAfterWorkOfEveryKind) {
  const Operation undo{.name = "undo",
                       .stage = Stage::kCommitted,
                       .act = [](Workspace& workspace, const Part&) -> Status {
                         TRY(workspace.Undo(""));
                         return {};
                       }};
  const uint64_t first = FirstSeed();
  for (uint64_t seed = first; seed < first + Scaled(20) && !HasFailure();
       ++seed) {
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
    CrashRig rig(undo, seed);
    ASSERT_EQ(rig.CrashAt(0), Ending::kSurvived);
    rig.DemandRecovery(true);
  }
}

TEST(UndoTest, HistoryIsKeptUpToItsBytes) {
  const TempDir scratch;
  BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  base.File("a", std::string(100'000, 'x'));
  const auto started = CoreDriver::Start(base.root(), {.collects = false});
  ASSERT_OK(started);
  Workspace& workspace = (*started)->workspace();
  uint64_t bytes = 0;
  const auto directory = OpenAt(AT_FDCWD, base.root(), O_RDONLY | O_DIRECTORY);
  ASSERT_OK(directory);
  const BaseDirectory root(OpenAt(directory->get(), ".", O_RDONLY).value());
  for (const char* content : {"1", "2"}) {
    ASSERT_OK((*started)->Unlink("a"));
    ASSERT_OK((*started)->WriteFile("a", std::string(50'000, *content)));
    ASSERT_OK((*started)->Commit());
  }
  const Vaults vaults(root, workspace.store().dir());
  const auto ids = vaults.Ids();
  ASSERT_OK(ids);
  for (const std::string& id : *ids) {
    bytes += vaults.Bytes(id).value();
  }
  ASSERT_GT(bytes, 0U);
  const auto freed = [&](uint64_t kept) {
    const auto report = workspace.CollectGarbage({.bytes = kept});
    EXPECT_OK(report);
    return report->commits;
  };
  EXPECT_EQ(freed(bytes), 0U);
  EXPECT_EQ(freed(bytes - 1), 1U);
  ASSERT_OK((*started)->Undo(""));
  EXPECT_FALSE((*started)->Undo(""));
  EXPECT_EQ(base.Read("a"), std::string(50'000, '1'));
}

}  // namespace
}  // namespace txfs::testing

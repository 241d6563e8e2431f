#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <ranges>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

constexpr ViewRules kSameInodes{.ctime = false};
constexpr ViewRules kNewInodes{.ino = false, .ctime = false};

/// A transaction of which parts end.
class Parted {
 public:
  Parted(const std::vector<Step>& steps, bool keep_lookups)
      : base_(scratch_.path() + "/ws") {
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
    original_ = Base();
    Work(steps);
  }
  ~Parted() { runner_->DropAll(); }
  Parted(const Parted&) = delete;
  Parted& operator=(const Parted&) = delete;

  void Work(const std::vector<Step>& steps) {
    for (const Step& step : steps) runner_->Run(step);
  }

  TreeView Base() {
    PosixDriver plain(base_.root());
    return View(plain);
  }
  TreeView View() { return View(*driver_); }
  [[nodiscard]] const TreeView& original() const { return original_; }
  Workspace& workspace() { return driver_->workspace(); }

  /// Something that changed, or a directory above it; empty when nothing did.
  std::string AnyPath(size_t choice, bool expand) {
    // Names of a file that nobody looked at are not known.
    View();
    const auto changes = workspace().Changes(expand);
    RC_ASSERT(changes.has_value());
    if (changes->empty()) return "";
    const NetChange& change = (*changes)[choice % changes->size()];
    std::string path = change.path;
    if (choice % 3 == 1 && !change.old_path.empty()) path = change.old_path;
    const size_t slash = path.find('/');
    if (choice % 5 == 1 && slash != std::string::npos) path.resize(slash);
    return path;
  }

  /// After a part ended at `path` the view must be `expected`, now and when it
  /// is opened again.
  void DemandSettled(const std::string& path, const TreeView& expected,
                     const ViewRules& rules, bool remount) {
    DemandNoChange(path);
    DemandSame("the end of a part", expected, View(), rules);
    DemandSound();
    if (!remount) return;
    Remount();
    DemandSame("the end of a part, opened again", expected, View(), rules);
    DemandNoChange(path);
  }

  bool HasChange(const std::string& path) {
    const auto changes = workspace().Changes(true, {path});
    RC_ASSERT(changes.has_value());
    return !changes->empty() && !IsBelowAChange(path);
  }

  void Remount() {
    runner_->DropAll();
    Demand("remount", driver_->Remount());
  }
  void DemandSame(const std::string& when, const TreeView& expected,
                  const TreeView& actual, const ViewRules& rules) {
    const std::string differences = Compare(expected, actual, rules);
    if (!differences.empty())
      RC_LOG() << "after " << when << ":\n" << differences;
    RC_ASSERT(differences.empty());
  }
  void DemandSound() {
    const std::string problems = FindProblems(base_.root());
    if (!problems.empty()) RC_LOG() << problems;
    RC_ASSERT(problems.empty());
  }
  static void Demand(const std::string& what, const Status& done) {
    if (!done) RC_LOG() << what << ": " << done.error().ToString() << '\n';
    RC_ASSERT(done.has_value());
  }
  /// Nobody else works here: what differs from what was noted of the base was
  /// noted of the wrong place.
  void DemandNoConflict() {
    const auto conflicts = workspace().FindConflicts();
    RC_ASSERT(conflicts.has_value());
    Demand("conflicts", NoConflicts(*conflicts));
  }
  void Undo() { Demand("undo", driver_->Undo("")); }
  void DropAll() { runner_->DropAll(); }

 private:
  void DemandNoChange(const std::string& path) {
    const auto changes = workspace().Changes(true, {path});
    RC_ASSERT(changes.has_value());
    if (IsBelowAChange(path)) return;
    for (const NetChange& change : *changes) {
      // Names of a file of several names may come back into sight.
      if (change.before && change.before->attr.nlink > 1) continue;
      RC_LOG() << change.path << " at or below " << path
               << " is a change still\n";
      RC_FAIL();
    }
  }

  /// It may be in a directory that is elsewhere, or in the place of another.
  bool IsBelowAChange(const std::string& path) {
    const auto changes = workspace().Changes(false);
    RC_ASSERT(changes.has_value());
    return std::ranges::any_of(*changes, [&](const NetChange& change) {
      return path.starts_with(change.path + "/") ||
             (!change.old_path.empty() &&
              path.starts_with(change.old_path + "/"));
    });
  }

  static TreeView View(Driver& driver) {
    auto view = ViewWithoutStore(driver);
    if (!view) RC_LOG() << view.error().ToString() << '\n';
    RC_ASSERT(view.has_value());
    return std::move(*view);
  }

  TempDir scratch_{MemoryDirectory()};
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
  std::unique_ptr<StepRunner> runner_;
  TreeView original_;
};

Status CommitPath(Workspace& workspace, const std::string& path) {
  const CommitReport report = TRY(
      workspace.Commit({.message = "part", .paths = {path}, .conflicts = {}}));
  return NoConflicts(report.conflicts);
}

/// Steps, in half of the cases with two among them after which a directory has
/// the path that it had, in what took the place of the one above it.
rc::Gen<std::vector<Step>> AnySteps() {
  const auto steps =
      rc::gen::container<std::vector<Step>>(AnyStep(StepModes(false)));
  const auto name = rc::gen::elementOf(std::string("abcd"));
  return rc::gen::mapcat(steps, [=](const std::vector<Step>& plain) {
    return rc::gen::apply(
        [=](bool insert, size_t at, char one, char other, char below) {
          if (!insert) return plain;
          std::vector<Step> all = plain;
          const auto place = all.begin() + static_cast<ptrdiff_t>(at);
          const std::string up{one}, down{other};
          const Step tops{
              .kind = StepKind::kExchange, .path = up, .other = down};
          const Step back{.kind = StepKind::kExchange,
                          .path = up + "/" + below,
                          .other = down + "/" + below};
          all.insert(place, {tops, back});
          return all;
        },
        rc::gen::arbitrary<bool>(),
        rc::gen::inRange<size_t>(0, plain.size() + 1), name, name, name);
  });
}

TEST(PartTest, CommittingPartsAndTheRestIsCommittingAll) {
  SetCases(Scaled(40));
  const auto steps = AnySteps();
  EXPECT_TRUE(rc::check("parts, work, the rest, undo of each", [&] {
    const auto first = *steps, second = *steps;
    const auto choices = *rc::gen::container<std::vector<size_t>>(
        2, rc::gen::inRange<size_t>(0, 1000));
    const bool remount = *rc::gen::arbitrary<bool>();
    Parted parted(first, *rc::gen::arbitrary<bool>());
    std::vector<TreeView> bases{parted.original()};
    for (const size_t choice : choices) {
      const std::string path = parted.AnyPath(choice, true);
      if (path.empty()) continue;
      RC_LOG() << "part: " << path << '\n';
      const TreeView before = parted.View();
      Parted::Demand("commit", CommitPath(parted.workspace(), path));
      parted.DemandSettled(path, before, kNewInodes, remount);
      parted.DemandNoConflict();
      bases.push_back(parted.Base());
    }
    parted.Work(second);
    parted.DropAll();
    const TreeView worked = parted.View();
    Parted::Demand("commit", [&]() -> Status {
      const CommitReport report = TRY(parted.workspace().Commit(
          {.message = "rest", .paths = {}, .conflicts = {}}));
      if (report.nothing) bases.pop_back();
      return NoConflicts(report.conflicts);
    }());
    parted.DemandSame("the commit of the rest, in the transaction", worked,
                      parted.View(), kNewInodes);
    parted.Remount();
    parted.DemandSame("the commit of the rest", worked, parted.Base(),
                      kNewInodes);
    for (const TreeView& base : bases | std::views::reverse) {
      parted.Undo();
      parted.DemandSame("undo", base, parted.Base(), kSameInodes);
    }
  }));
}

TEST(PartTest, DiscardingPartsLeavesTheRest) {
  SetCases(Scaled(40));
  const auto steps = AnySteps();
  EXPECT_TRUE(rc::check("parts, work, commit", [&] {
    const auto first = *steps, second = *steps;
    const auto choices = *rc::gen::container<std::vector<size_t>>(
        2, rc::gen::inRange<size_t>(0, 1000));
    const bool remount = *rc::gen::arbitrary<bool>();
    Parted parted(first, *rc::gen::arbitrary<bool>());
    for (const size_t choice : choices) {
      const std::string path = parted.AnyPath(choice, false);
      if (path.empty()) continue;
      RC_LOG() << "part: " << path << '\n';
      // What comes back to where it was may have changed elsewhere.
      for (int i = 0; i < 3 && (i == 0 || parted.HasChange(path)); ++i) {
        parted.View();
        const auto discarded = parted.workspace().DiscardPart({path});
        if (!discarded) RC_LOG() << discarded.error().ToString() << '\n';
        RC_ASSERT(discarded.has_value());
      }
      parted.DemandSettled(path, parted.View(), kNewInodes, remount);
      parted.DemandSame("discard of a part", parted.original(), parted.Base(),
                        kSameInodes);
    }
    parted.Work(second);
    parted.DropAll();
    const TreeView worked = parted.View();
    const auto rest = parted.workspace().Commit(
        {.message = "rest", .paths = {}, .conflicts = {}});
    RC_ASSERT(rest.has_value());
    parted.DemandSame("the commit of the rest, in the transaction", worked,
                      parted.View(), kNewInodes);
    parted.Remount();
    parted.DemandSame("the commit of the rest", worked, parted.Base(),
                      kNewInodes);
  }));
}

/// `outer/inner` was turned inside out. It cannot go back into `outer` while
/// that is in it.
TEST(PartTest, DiscardingTheMoveOfADirectoryTakesAlongWhatWouldContainItself) {
  const TempDir scratch(MemoryDirectory());
  BaseTree base(scratch.path());
  base.File("outer/inner/f", "comes along");
  const auto driver = CoreDriver::Start(base.root(), {});
  ASSERT_OK(driver);
  ASSERT_OK((*driver)->Rename("outer/inner", "inner", 0));
  ASSERT_OK((*driver)->Rename("outer", "inner/outer", 0));
  ASSERT_OK((*driver)->workspace().DiscardPart({"inner/f"}));
  EXPECT_OK((*driver)->Stat("outer/inner/f"));
  EXPECT_ERRNO((*driver)->Stat("inner"), ENOENT);
  ASSERT_OK((*driver)->workspace().Close());
  EXPECT_EQ(FindProblems(base.root()), "");
}

std::pair<time_t, long> ModifiedAt(const struct stat& st) {
  return {st.st_mtim.tv_sec, st.st_mtim.tv_nsec};
}

/// Nothing of a directory is changed any more, so it goes with the base's.
class UnchangedDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_.File("file", "somewhere");
    base_.Directory("directory");
    base_.File("directory/old", "goes");
    auto driver = CoreDriver::Start(base_.root(), {});
    ASSERT_OK(driver);
    driver_ = std::move(*driver);
  }

  void ExpectGoesWithTheBases() {
    const std::string directory = base_.root() + "/directory";
    std::filesystem::remove_all(directory);
    ASSERT_OK(driver_->workspace().Refresh());
    EXPECT_ERRNO(driver_->Stat("directory"), ENOENT);
    EXPECT_OK(driver_->Stat("file"));
    ASSERT_OK(driver_->workspace().Close());
    EXPECT_EQ(FindProblems(base_.root()), "");
  }

  const TempDir scratch_{MemoryDirectory()};
  BaseTree base_{scratch_.path()};
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(UnchangedDirectoryTest, AllWasDiscarded) {
  ASSERT_OK(driver_->Rename("file", "directory/file", 0));
  ASSERT_OK(driver_->workspace().DiscardPart({"directory/file"}));
  ExpectGoesWithTheBases();
}

/// A name that went and came back is nothing to commit, but the time at which
/// it did is, by the commit of the rest.
TEST_F(UnchangedDirectoryTest, KeepsTimesThatTheCommitOfAPartLeaves) {
  ASSERT_OK(driver_->Mkdir("other", 0755));
  ASSERT_OK(driver_->Rename("directory/old", "directory/away", 0));
  ASSERT_OK(driver_->Rename("directory/away", "directory/old", 0));
  ASSERT_OK(driver_->Chmod("directory/old", 0600));
  const auto before = driver_->Stat("directory");
  ASSERT_OK(before);
  ASSERT_OK(driver_->workspace().Commit(
      {.message = "part", .paths = {"directory/old"}}));
  const auto after = driver_->Stat("directory");
  ASSERT_OK(after);
  EXPECT_EQ(ModifiedAt(*after), ModifiedAt(*before));
  ASSERT_OK(driver_->Commit());
  struct stat st{};
  ASSERT_EQ(::lstat((base_.root() + "/directory").c_str(), &st), 0);
  EXPECT_EQ(ModifiedAt(st), ModifiedAt(*before));
}

TEST_F(UnchangedDirectoryTest, AllWasCommitted) {
  ASSERT_OK(driver_->Mkdir("other", 0755));
  ASSERT_OK(driver_->Unlink("directory/old"));
  ASSERT_OK(driver_->workspace().Commit(
      {.message = "part", .paths = {"directory/old"}}));
  ExpectGoesWithTheBases();
}

}  // namespace
}  // namespace txfs::testing

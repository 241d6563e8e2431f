#include "fs/diff/plain_files.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fs/overlay/overlay.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

void Write(const std::optional<ChangeSide>& side, std::ostream& out) {
  if (!side) {
    out << " none";
    return;
  }
  out << ' ' << Raw(side->ino) << ' ' << side->base_path << ' '
      << side->attr.mode << ' ' << side->attr.uid << ' ' << side->attr.size
      << ' ' << side->attr.mtime.nsec << ' ' << side->symlink;
}

std::string TextOf(const NetChange& change) {
  std::ostringstream out;
  out << change.path << " kind " << static_cast<int>(change.kind) << " from "
      << change.old_path << (change.content ? " content" : "")
      << (change.attributes ? " attributes" : "");
  Write(change.before, out);
  Write(change.after, out);
  return out.str();
}

std::vector<std::string> Settle(Frozen& frozen, Result<ChangeList> list) {
  RC_ASSERT(list.has_value());
  const auto changes = (*std::move(list)).Settle(frozen);
  RC_ASSERT(changes.has_value());
  std::vector<std::string> texts;
  for (const NetChange& change : *changes) texts.push_back(TextOf(change));
  return texts;
}

void DemandWholeList(OverlayFilesystem& overlay, PlainSurvey& survey,
                     bool expand) {
  overlay.WhileFrozen([&](Frozen& frozen) {
    const auto all = Settle(frozen, ChangeList::Collect(frozen, expand));
    PlainFiles plain = PlainFiles::Find(frozen, survey);
    RC_ASSERT(Settle(frozen, ChangeList::Collect(frozen, std::move(plain),
                                                 expand)) == all);
  });
}

/// A transaction, a base that others change, and looks at both.
class Looked {
 public:
  explicit Looked(bool keep_lookups) : base_(scratch_.path() + "/ws") {
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
  }
  ~Looked() { runner_->DropAll(); }
  Looked(const Looked&) = delete;
  Looked& operator=(const Looked&) = delete;

  void Work(const std::vector<Step>& steps) {
    for (const Step& step : steps) runner_->Run(step);
  }
  void WorkInBase(const std::vector<Step>& steps) {
    PosixDriver others(base_.root());
    StepRunner runner(others);
    for (const Step& step : steps) runner.Run(step);
    runner.DropAll();
  }
  void MakeSavepoint() {
    RC_ASSERT(driver_->MakeSavepoint("here").has_value());
  }
  void Rollback() { RC_ASSERT(driver_->Rollback("here").has_value()); }
  OverlayFilesystem& overlay() {
    return dynamic_cast<OverlayFilesystem&>(driver_->workspace().filesystem());
  }

 private:
  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
  std::unique_ptr<StepRunner> runner_;
};

/// What a list of everything says, a list that takes plain files from a survey
/// must say too, whatever was done since.
TEST(PlainFilesPropertyTest, ASurveyAndWhatWasDoneSinceIsTheWholeList) {
  SetCases(Scaled(300));
  EXPECT_TRUE(rc::check("work, survey, more work, list", [] {
    const auto steps =
        rc::gen::container<std::vector<Step>>(AnyStep(StepModes(false)));
    Looked looked(*rc::gen::arbitrary<bool>());
    looked.Work(*steps);
    looked.MakeSavepoint();
    looked.Work(*steps);
    const bool has_others = *rc::gen::arbitrary<bool>();
    if (has_others) looked.WorkInBase(*steps);
    const bool expand = *rc::gen::arbitrary<bool>();
    OverlayFilesystem& overlay = looked.overlay();
    PlainSurvey list(overlay, Wanted::kList);
    DemandWholeList(overlay, list, expand);
    PlainSurvey later(overlay, Wanted::kList);
    looked.Work(*steps);
    const bool goes_back =
        *rc::gen::weightedElement<bool>({{1, true}, {4, false}});
    if (goes_back) looked.Rollback();
    DemandWholeList(overlay, later, expand);
    PlainSurvey count(overlay, Wanted::kCount);
    looked.Work(*steps);
    overlay.WhileFrozen([&](Frozen& frozen) {
      const auto all = Settle(frozen, ChangeList::Collect(frozen, false));
      PlainFiles plain = PlainFiles::Find(frozen, count);
      const size_t counted = plain.changes;
      const auto rest =
          Settle(frozen, ChangeList::Collect(frozen, std::move(plain), false));
      RC_ASSERT(counted + rest.size() == all.size());
    });
  }));
}

class PlainFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    umask(022);
    base_.Directory("d");
    for (int i = 0; i < 3; ++i) base_.File("d/f" + std::to_string(i), "before");
    auto started = CoreDriver::Start(base_.root(), {});
    ASSERT_TRUE(started.has_value());
    driver_ = std::move(*started);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(driver_->WriteFile("d/f" + std::to_string(i), "after!"));
    }
    ASSERT_TRUE(driver_->Mkdir("d/new", 0755));
    ASSERT_TRUE(driver_->WriteFile("d/new/file", "x"));
  }
  OverlayFilesystem& overlay() {
    return dynamic_cast<OverlayFilesystem&>(driver_->workspace().filesystem());
  }
  void ChangeBase(const std::string& path) {
    ASSERT_EQ(::chmod((base_.root() + "/" + path).c_str(), 0600), 0);
  }
  /// How many upper inodes are left over in a freeze after a survey.
  size_t OthersIn(PlainSurvey& survey) {
    return overlay().WhileFrozen([&](Frozen& frozen) {
      return PlainFiles::Find(frozen, survey).others.size();
    });
  }

  TempDir scratch_;
  BaseTree base_{scratch_.path()};
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(PlainFilesTest, OnlyDirectoriesAreLeftOver) {
  PlainSurvey survey(overlay(), Wanted::kCount);
  EXPECT_EQ(OthersIn(survey), 2u);  // d, d/new
}

/// What others change in the base after a look shows whether the look counts:
/// the next one would find that the file is not as noted.
TEST_F(PlainFilesTest, TheFreezeLooksOnlyAtWhatWasTouchedSince) {
  PlainSurvey survey(overlay(), Wanted::kList);
  ChangeBase("d/f0");
  ChangeBase("d/f2");
  ASSERT_TRUE(driver_->Unlink("d/f1"));
  ASSERT_TRUE(driver_->Rename("d/new/file", "d/new/moved", 0));
  ASSERT_TRUE(driver_->WriteFile("d/f2", "later!"));
  overlay().WhileFrozen([&](Frozen& frozen) {
    PlainFiles plain = PlainFiles::Find(frozen, survey);
    EXPECT_EQ(plain.list.size(), 2u);    // f0, moved
    EXPECT_EQ(plain.others.size(), 4u);  // d, d/new, f1, f2
  });
}

TEST_F(PlainFilesTest, OneQueryLeavesTheSurveyOfAnotherOfUse) {
  PlainSurvey survey(overlay(), Wanted::kCount);
  ChangeBase("d/f0");
  PlainSurvey other(overlay(), Wanted::kCount);
  overlay().WhileFrozen([&](Frozen& frozen) {
    EXPECT_EQ(PlainFiles::Find(frozen, other).others.size(), 3u);
    frozen.LeaveTree();
  });
  EXPECT_EQ(OthersIn(survey), 2u);
}

TEST_F(PlainFilesTest, WhatIsDoneWithEverythingFrozenEndsASurvey) {
  PlainSurvey survey(overlay(), Wanted::kCount);
  ChangeBase("d/f0");
  overlay().WhileFrozen([](Frozen&) {});
  EXPECT_EQ(OthersIn(survey), 3u);
}

TEST_F(PlainFilesTest, AMovedDirectoryEndsASurvey) {
  PlainSurvey survey(overlay(), Wanted::kCount);
  ChangeBase("d/f0");
  ASSERT_TRUE(driver_->Rename("d/new", "d/newer", 0));
  EXPECT_EQ(OthersIn(survey), 3u);
}

/// For the sanitizers, and for what moves in Tree::upper between two parts.
TEST_F(PlainFilesTest, SurveysWhileOthersWork) {
  std::atomic<bool> ends = false;
  std::thread worker([&] {
    for (int i = 0; !ends; i = (i + 1) % 500) {
      const std::string path = "d/new/" + std::to_string(i);
      EXPECT_TRUE(driver_->WriteFile(path, path));
      EXPECT_TRUE(driver_->WriteFile("d/f" + std::to_string(i % 3), path));
      const Status done = i % 3 == 0 ? driver_->Unlink(path)
                                     : driver_->Rename(path, path + "moved", 0);
      EXPECT_TRUE(done);
    }
  });
  for (int i = 0; i < Scaled(200); ++i) {
    PlainSurvey survey(overlay(), Wanted::kList);
    overlay().WhileFrozen([&](Frozen& frozen) {
      const auto all = Settle(frozen, ChangeList::Collect(frozen, false));
      PlainFiles plain = PlainFiles::Find(frozen, survey);
      EXPECT_EQ(
          Settle(frozen, ChangeList::Collect(frozen, std::move(plain), false)),
          all);
    });
  }
  ends = true;
  worker.join();
}

}  // namespace
}  // namespace txfs::testing

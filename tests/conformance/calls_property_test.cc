#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using Calls = std::vector<std::vector<Step>>;

/// Times of work are those of the run.
constexpr ViewRules kReplayed{.ino = false, .ctime = false, .mtime = false};

/// Whether a step depends on the tree in a way that its outcome shows, and not
/// on a content that it carries elsewhere.
bool ShowsWhatItReads(const Step& step) {
  switch (step.kind) {
    case StepKind::kCopyRange:
    case StepKind::kHold:
    case StepKind::kHeldWrite:
    case StepKind::kHeldRead:
    case StepKind::kHeldTruncate:
    case StepKind::kDrop:
    case StepKind::kRead:
    case StepKind::kList:
    case StepKind::kStat:
      return false;
    default:
      return true;
  }
}

/// A workspace in which calls do steps.
class Worked {
 public:
  explicit Worked(const DriverKind& kind) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = kind.start(scratch_);
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
    runner_ = std::make_unique<StepRunner>(*driver_);
  }

  Driver& driver() { return *driver_; }

  /// Does the calls but `without`; returns what came of the steps.
  std::vector<std::string> Do(const Calls& calls, size_t without) {
    std::vector<std::string> outcomes;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (i == without) continue;
      Demand("mark", driver_->MarkCall("c" + std::to_string(i) + ".", false));
      for (const Step& step : calls[i]) {
        if (!ShowsWhatItReads(step)) continue;
        const std::string outcome = runner_->Run(step);
        outcomes.push_back(outcome);
        ends_.push_back(i);
      }
    }
    return outcomes;
  }

  /// The outcomes of steps after call `call`.
  [[nodiscard]] std::vector<std::string> After(
      size_t call, const std::vector<std::string>& outcomes) const {
    std::vector<std::string> later;
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (ends_[i] > call) later.push_back(outcomes[i]);
    }
    return later;
  }

  TreeView View() {
    auto view = ViewTree(*driver_);
    RC_ASSERT(view.has_value());
    return std::move(*view);
  }

  void Demand(const std::string& what, const Status& status) {
    if (!status) RC_LOG() << what << ": " << status.error().ToString() << '\n';
    RC_ASSERT(status.has_value());
  }
  void DemandSame(const std::string& when, const TreeView& expected,
                  const ViewRules& rules) {
    const std::string differences = Compare(expected, View(), rules);
    if (!differences.empty()) RC_LOG() << when << ":\n" << differences;
    RC_ASSERT(differences.empty());
  }
  void DemandSound() {
    const std::string problems = FindProblems(base_.root());
    if (!problems.empty()) RC_LOG() << problems;
    RC_ASSERT(problems.empty());
  }

 private:
  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<StepRunner> runner_;
  std::vector<size_t> ends_;  ///< the call of each outcome
};

class CallsPropertyTest : public ::testing::TestWithParam<DriverKind> {};
FOR_DRIVERS(CallsPropertyTest, Needs::kStore);

TEST_P(CallsPropertyTest, ARevertMakesTheTreeThatItWouldBeWithoutTheCall) {
  SetCases(Scaled(GetParam().kernel ? 8 : 60), 12);
  const auto calls_of =
      rc::gen::container<Calls>(4, rc::gen::container<std::vector<Step>>(
                                       AnyStep(StepModes(GetParam().kernel))));
  size_t reverted = 0;
  EXPECT_TRUE(rc::check("one of four calls is reverted", [&] {
    const Calls calls = *calls_of;
    const size_t which = *rc::gen::inRange<size_t>(0, calls.size());
    const bool remounts = *rc::gen::arbitrary<bool>();
    Worked fs(GetParam());
    const auto outcomes = fs.Do(calls, SIZE_MAX);
    const TreeView before = fs.View();
    if (remounts) fs.Demand("remount", fs.driver().Remount());
    const auto built_on =
        fs.driver().RevertCall("c" + std::to_string(which) + ".");
    if (!built_on) RC_LOG() << built_on.error().ToString();
    RC_ASSERT(built_on.has_value());
    fs.DemandSound();
    if (!built_on->empty()) {
      return fs.DemandSame("a refused revert", before, {.ino = !remounts});
    }
    const TreeView after = fs.View();
    fs.Demand("remount", fs.driver().Remount());
    fs.DemandSame("after a remount", after, {});
    Worked replay(GetParam());
    const auto again = replay.Do(calls, which);
    // A later step may have seen what the call did: it did something else.
    if (replay.After(which, again) == fs.After(which, outcomes)) {
      ++reverted;
      fs.DemandSame("a replay without the call", replay.View(), kReplayed);
    }
    // It is the fifth call, if it changed something.
    const auto built_on_revert = fs.driver().RevertCall("5");
    if (built_on_revert.has_value()) {
      for (const std::string& path : *built_on_revert) RC_LOG() << path;
      RC_ASSERT(built_on_revert->empty());
      fs.DemandSame("the revert reverted", before, kReplayed);
      fs.DemandSound();
      fs.Demand("rollback", fs.driver().Rollback("call-5"));
      fs.DemandSame("without the revert", before, {.ino = false});
      fs.DemandSound();
    }
  }));
  EXPECT_GT(reverted, 0u);
}

}  // namespace
}  // namespace txfs::testing

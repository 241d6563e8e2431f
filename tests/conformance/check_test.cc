#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <cstdlib>
#include <vector>

#include "tests/conformance/core_driver.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// A workspace with the core over it and a base that steps know.
class Bench {
 public:
  explicit Bench(const CoreOptions& options) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = CoreDriver::Start(base_.root(), options);
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
    runner_ = std::make_unique<StepRunner>(*driver_);
  }

  void Run(const vector<Step>& steps) {
    for (const Step& step : steps) runner_->Run(step);
    DemandSound("with the journal open");
  }
  void Settle() {
    RC_ASSERT(driver_->Settle().has_value());
    DemandSound("drained");
  }
  void Remount() {
    runner_->DropAll();
    RC_ASSERT(driver_->Remount().has_value());
    DemandSound("opened again");
  }
  void Commit() {
    RC_ASSERT(driver_->Commit().has_value());
    DemandSound("after a commit");
  }
  void Close() {
    runner_->DropAll();
    driver_.reset();
    DemandSound("closed");
  }

 private:
  void DemandSound(const string& when) {
    const string problems = FindProblems(base_.root());
    if (!problems.empty()) RC_LOG() << when << ":\n" << problems;
    RC_ASSERT(problems.empty());
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<StepRunner> runner_;
};

TEST(CheckTest, FindsNothingWhereNothingIsWrong) {
  const char* given = std::getenv("RC_PARAMS");
  const string params =
      string(given ? given : "") +
      " max_size=120 max_success=" + std::to_string(Scaled(40));
  setenv("RC_PARAMS", params.c_str(), 1);
  const auto steps = rc::gen::container<vector<Step>>(AnyStep());
  EXPECT_TRUE(rc::check("steps, remount, steps, commit, steps, close", [&] {
    Bench bench({.background_drain = *rc::gen::arbitrary<bool>(),
                 .keep_lookups = *rc::gen::arbitrary<bool>()});
    bench.Run(*steps);
    bench.Settle();
    bench.Remount();
    bench.Run(*steps);
    bench.Commit();
    bench.Run(*steps);
    bench.Close();
  }));
}

}  // namespace
}  // namespace txfs::testing

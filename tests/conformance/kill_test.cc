#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/interrupted.h"
#include "tests/conformance/mount_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/process.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

constexpr int kMaxStepsOfALife = 2000;

/// Kills the daemon at a random moment after a random number of steps.
class Killer {
 public:
  Killer(MountDriver& driver, std::mt19937_64& random)
      : after_steps_(std::uniform_int_distribution<int>(0, 400)(random)),
        delay_(std::uniform_int_distribution<int>(0, 3000)(random)),
        thread_([this, &driver] { Run(driver); }) {}
  ~Killer() {
    Step(kMaxStepsOfALife);
    thread_.join();
  }
  Killer(const Killer&) = delete;
  Killer& operator=(const Killer&) = delete;

  /// Says how many steps were done.
  void Step(int done) {
    done_ = done;
    done_.notify_one();
  }

 private:
  void Run(MountDriver& driver) {
    for (int done = done_; done < after_steps_; done = done_) done_.wait(done);
    // The moment within a step is what the delay makes random.
    const auto end = std::chrono::steady_clock::now() + delay_;
    while (std::chrono::steady_clock::now() < end) {
    }
    driver.Kill();
  }

  const int after_steps_;
  const std::chrono::microseconds delay_;
  std::atomic<int> done_ = 0;
  std::thread thread_;
};

/// What the writer did when the daemon died.
struct Death {
  /// The step that was not acknowledged; none when the daemon outlived the
  /// work.
  std::optional<Step> in_flight;
};

/// A mount and its model: a plain directory in which every acknowledged step
/// was done.
class KilledLife {
 public:
  explicit KilledLife(uint64_t seed)
      : random_(seed), base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    CopyTree(base_.root(), scratch_.path() + "/model");
    model_ = std::make_unique<PosixDriver>(scratch_.path() + "/model");
  }

  Status Mount() {
    auto started = MountDriver::Start(base_.root(), scratch_.path() + "/mnt");
    if (!started) return std::unexpected(started.error());
    driver_ = std::move(*started);
    return {};
  }

  /// Works until the daemon is killed, mounts again and demands what was
  /// acknowledged.
  void WorkDieAndRecover() {
    StepRunner runner(*driver_), model_runner(*model_);
    const Death death = WorkUntilDeath(runner, model_runner);
    // Files that are still open must not keep the dead mount from being
    // cleared.
    ASSERT_OK(daemon().Mount());
    runner.DropAll();
    DemandAcknowledged(death, model_runner);
    model_runner.DropAll();
  }

 private:
  MountDriver& daemon() { return static_cast<MountDriver&>(*driver_); }

  Death WorkUntilDeath(StepRunner& runner, StepRunner& model_runner) {
    Killer killer(daemon(), random_);
    for (int done = 0; done < kMaxStepsOfALife; killer.Step(++done)) {
      const Step step =
          AnyStep(StepModes(/*kernel=*/true))(rc::Random(random_()), kStepSize)
              .value();
      if (IsCompound(step)) continue;
      const std::string outcome = runner.Run(step);
      if (IsDeath(outcome)) return {.in_flight = step};
      // A write of a part of a page reads the page first; when that is what the
      // death cuts off, the kernel says EIO.
      if (outcome == "EIO" && IsGone(*driver_)) return {.in_flight = step};
      EXPECT_EQ(outcome, model_runner.Run(step)) << step;
    }
    return {};
  }

  /// The tree is the model's, or what the step in flight makes of it.
  void DemandAcknowledged(const Death& death, StepRunner& model_runner) {
    std::string differences = Differences();
    if (differences.empty() || !death.in_flight) {
      EXPECT_EQ(differences, "");
      return;
    }
    for (const Step& step : Prefixes(*death.in_flight, *model_)) {
      (void)model_runner.Run(step);
      const std::string now = Differences();
      if (now.empty()) return;
      differences += "with the step in flight:\n" + now;
    }
    ADD_FAILURE() << "in flight: " << *death.in_flight << '\n' << differences;
  }

  std::string Differences() {
    auto expected = ViewTree(*model_), actual = ViewTree(*driver_);
    if (!expected) return expected.error().ToString();
    if (!actual) return actual.error().ToString();
    expected->erase("");
    actual->erase("");
    return Compare(*expected, *actual,
                   {.ino = false,
                    .ctime = false,
                    .mtime = false,
                    .fixed_before = kBeforeNow});
  }

  std::mt19937_64 random_;
  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> model_, driver_;
};

TEST(KillMountTest, EveryAcknowledgedOperationSurvivesSigkill) {
  if (!CanMount())
    GTEST_SKIP() << "no program under test or no usable /dev/fuse";
  umask(022);
  const uint64_t first = FirstSeed();
  const int loops = Scaled(10);
  for (uint64_t seed = first; seed < first + loops; ++seed) {
    std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
    KilledLife life(seed);
    ASSERT_OK(life.Mount());
    for (int deaths = 0; deaths < 3 && !::testing::Test::HasFailure();
         ++deaths) {
      life.WorkDieAndRecover();
    }
    ASSERT_FALSE(::testing::Test::HasFailure()) << "TXFS_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace txfs::testing

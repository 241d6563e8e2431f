#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>

#include "tests/conformance/driver.h"
#include "tests/conformance/soak_model.h"
#include "tests/conformance/steps.h"

namespace txfs::testing {

/// Where threads wait, between two operations, while something happens that
/// they must not disturb.
class Gate {
 public:
  /// Returns when all who pass here wait. Requires as many as were announced.
  void Close();
  void Open();
  /// Opens for the last time.
  void Dismiss();

  void Announce() { ++members_; }
  /// Waits while the gate is closed; false when it was dismissed.
  bool Pass();
  /// Waits until it is closed.
  void AwaitClosing();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> members_ = 0;
  int waiting_ = 0;
  bool closed_ = false, dismissed_ = false;
};

/// Random steps.
class SoakSteps {
 public:
  /// Now and then one of a path of `shared`/`prefix`*, where others work, too;
  /// no path there when `shared` is empty.
  SoakSteps(uint64_t seed, std::string shared_prefix)
      : random_(seed), shared_prefix_(std::move(shared_prefix)) {}

  Step Next();
  bool OneIn(uint32_t count) { return random_() % count == 0; }

 private:
  void MaybeShare(std::string& path);

  std::mt19937_64 random_;
  const std::string shared_prefix_;
};

/// One who works in the directory of the mount that is its own, and in one that
/// is everybody's under names that are its own; keeps files open and a
/// directory to work in; and does the same in the model.
class SoakClient {
 public:
  SoakClient(int number, std::string mountpoint, SoakModel& model,
             uint64_t seed);
  ~SoakClient();

  /// One step. False when the mount died meanwhile.
  bool Step(bool may_be_compound);

  // All others while nobody steps.

  /// Lets go of a working directory that is not in the model (any more):
  /// rolling back does not lead processes back into a directory that was
  /// removed.
  void LeaveLostDirectory();
  void DropAll();
  /// The mount died and is there again: closes what was open in it.
  void ForgetMount();
  /// Makes the model what `actual` is, if what the step in flight left makes
  /// the difference; a failure if not.
  void SettleInFlight(const TreeView& actual);

  [[nodiscard]] uint64_t steps() const { return steps_; }
  /// The last steps, for who looks for the cause of a failure.
  [[nodiscard]] std::string OnTheWay(const std::string& path) const;
  [[nodiscard]] std::string Story() const;

 private:
  /// A directory, in the mount and in the model.
  struct Place {
    std::unique_ptr<Driver> mount, model;
    std::unique_ptr<StepRunner> runner, model_runner;
    std::optional<Handle> mount_dir, model_dir;
  };

  static Place At(std::unique_ptr<Driver> mount, std::unique_ptr<Driver> model);
  void ChangeDirectory(const std::string& path);
  void Leave();
  [[nodiscard]] TreeView Mine(const TreeView& tree) const;
  std::string Differences(const TreeView& actual);

  const int number_;
  const std::string own_, shared_prefix_, mountpoint_;
  SoakModel& model_;
  SoakSteps random_;
  Place home_;
  std::optional<Place> away_;
  struct InFlight {
    ::txfs::testing::Step step;
    bool away = false;
  };
  std::optional<InFlight> in_flight_;
  std::deque<std::string> story_;
  uint64_t steps_ = 0;
};

/// Times of the base and of utimens steps are before this; "now" is after.
inline constexpr int64_t kSoakPast = 1'300'000'000;

}  // namespace txfs::testing

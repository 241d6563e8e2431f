#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/ordinary_user.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/sound.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr uid_t kUser = kOrdinaryUser;
/// Fewer than the crash points of the commit.
constexpr uint64_t kFewestPoints = 40;

/// A commit of an ordinary user that leaves directories of mode `mode`, which
/// dies on its way.
class DeniedCommit {
 public:
  DeniedCommit(string root, mode_t mode)
      : base_(std::move(root)), plain_(base_.root()), mode_(mode) {
    mkdir(base_.root().c_str(), 0755);
    base_.File("old/f", "old");
    base_.HardLink("old/f", "old/link");
    base_.File("old/gone", "gone");
    mkdir((base_.root() + "/.txfs").c_str(), 0700);
    base_.SetTimes();
    options_.path = base_.root();
    options_.store = options_.path + "/.txfs";
    options_.filesystem.exe_of = [](uint32_t) { return string("/test"); };
  }

  Status Work() {
    before_ = TRY(ViewWithoutStore(plain_));
    const auto driver = TRY(CoreDriver::Start(base_.root(), {}));
    driver->ActAs(kUser, kUser);
    TRY(driver->Mkdir("new", 0755));
    TRY(driver->Mkdir("new/deep", 0755));
    TRY(driver->WriteFile("new/deep/f", "deep"));
    TRY(driver->WriteFile("old/f", "written"));
    TRY(driver->WriteFile("old/made", "made"));
    TRY(driver->Link("old/f", "old/third"));
    TRY(driver->Unlink("old/gone"));
    after_ = TRY(ViewWithoutStore(*driver));
    for (const char* path : kDenied) TRY(driver->Chmod(path, mode_));
    return {};
  }

  Ending CommitAndDie(uint64_t point) {
    return RunAndCrash(
        options_,
        [](Workspace& workspace) -> Status {
          TRY(workspace.Commit({.message = "test"}));
          return {};
        },
        point, false);
  }

  /// What is wrong after the next one who opens the workspace has recovered.
  Result<string> Check() {
    {
      const auto driver = TRY(CoreDriver::Start(base_.root(), {}));
    }
    const auto made = plain_.Stat("new");
    if (!made)
      return Compare(before_, TRY(ViewWithoutStore(plain_)), {.ctime = false});
    for (const char* path : {"new", "old"}) {
      const struct stat st = TRY(plain_.Stat(path));
      if ((st.st_mode & 07777) != mode_) return path + string(": its mode");
    }
    TRY(Open());
    const string wrong = Compare(after_, TRY(ViewWithoutStore(plain_)),
                                 {.ino = false, .ctime = false});
    if (!wrong.empty()) return wrong;
    for (const char* path : kDenied) TRY(plain_.Chmod(path, mode_));
    const auto driver = TRY(CoreDriver::Start(base_.root(), {}));
    TRY(driver->Undo(""));
    return Compare(before_, TRY(ViewWithoutStore(plain_)), {.ctime = false});
  }

  /// For who deletes it.
  Status Open() {
    for (const char* path : {"old", "new", "new/deep"}) {
      TRY(plain_.Chmod(path, 0755));
    }
    return {};
  }

 private:
  static constexpr const char* kDenied[] = {"new/deep", "new", "old"};

  BaseTree base_;
  PosixDriver plain_;
  const mode_t mode_;
  WorkspaceOptions options_;
  TreeView before_, after_;
};

string CrashEverywhere(const string& scratch, mode_t mode, uint64_t seed) {
  Picks picks(seed);
  while (true) {
    const uint64_t point = picks.Next();
    const string when = "mode " + std::to_string(mode) + ", crash point " +
                        std::to_string(point) + ": ";
    const string root = scratch + "/" + std::to_string(point);
    DeniedCommit commit(root, mode);
    const Status worked = commit.Work();
    if (!worked) return when + worked.error().ToString();
    const Ending ending = commit.CommitAndDie(point);
    if (ending == Ending::kFailed) return when + "failed";
    const auto wrong = commit.Check();
    if (!wrong) return when + wrong.error().ToString();
    if (!wrong->empty()) return when + *wrong;
    if (const string problems = FindProblems(root); !problems.empty()) {
      return when + problems;
    }
    if (ending == Ending::kCrashed) continue;
    std::cout << "fewer than " << point << " crash points" << std::endl;
    return point > kFewestPoints ? "" : when + "it is not crashed";
  }
}

TEST(DeniedTest, ACrashIsRecoveredByTheUserWhomItsDirectoriesDeny) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be somebody else";
  const uint64_t seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
  for (const mode_t mode : {0000U, 0400U}) {
    const TempDir scratch(MemoryDirectory());
    ASSERT_EQ(::chown(scratch.path().c_str(), kUser, kUser), 0);
    EXPECT_EQ(AsOrdinaryUser(
                  [&] { return CrashEverywhere(scratch.path(), mode, seed); }),
              "");
  }
}

}  // namespace
}  // namespace txfs::testing

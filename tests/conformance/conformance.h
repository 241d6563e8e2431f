#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {

/// A way to run the filesystem: a parameter of the suite.
struct DriverKind {
  std::string name;
  bool kernel = false;  ///< real system calls: mmap and the like work
  bool plain = false;   ///< a plain directory
  std::function<Result<std::unique_ptr<Driver>>(const TempDir& scratch)> start;
};
void PrintTo(const DriverKind& kind, std::ostream* out);

/// Which kinds a suite is for.
enum class Needs { kNothing, kKernel, kStore };

/// The kinds that have what is needed and can run here: a mount needs a usable
/// /dev/fuse.
std::vector<DriverKind> DriverKinds(Needs needs);

/// Whether a mount can run here.
bool CanMount();

/// A workspace below a scratch directory, prepared with base() and then used
/// with fs(). Teardown demands, of every test: nothing reached the base, the
/// tree is the same after a remount, fsck finds nothing, and the base is the
/// same as the tree after a commit.
class ConformanceTest : public ::testing::TestWithParam<DriverKind> {
 protected:
  ConformanceTest();
  void TearDown() override;

  /// The base, for preparing it before the first fs().
  BaseTree& base() { return base_; }
  /// The filesystem; starts it when first called.
  Driver& fs();

  /// Stat, which must work.
  struct stat St(const std::string& path);
  std::string Content(const std::string& path);
  std::vector<std::string> Names(const std::string& path);
  Handle Open(const std::string& path, int flags);

  /// Commit, which must work; what it made is the base from now on.
  void Commit();
  /// The test changed the base itself.
  void AcceptBase();
  /// Leaves out the commit at the end, of what commit does not keep.
  void SkipCommit() { commits_ = false; }
  /// Leaves out all checks of whole trees, where paths are too long for them.
  /// Before the first fs().
  void SkipTreeChecks() { checks_trees_ = false; }

 private:
  TreeView ViewBase();
  void CheckBaseIsUntouched();
  /// Of a driver that tells it.
  void CheckStatus();
  void CheckRemountChangesNothing(const TreeView& before);
  void CheckCommitMakesTheBase(const TreeView& before);

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  TreeView base_view_;
  bool commits_ = true;
  /// A held file keeps its inode number when its object in the base changes.
  bool keeps_numbers_ = true;
  bool checks_trees_ = true;
};

/// `value` of a Result that must be one.
#define ASSERT_OK(expression)                                               \
  do {                                                                      \
    const auto& txfs_result = (expression);                                 \
    ASSERT_TRUE(txfs_result.has_value()) << txfs_result.error().ToString(); \
  } while (false)
#define EXPECT_OK(expression)                                               \
  do {                                                                      \
    const auto& txfs_result = (expression);                                 \
    EXPECT_TRUE(txfs_result.has_value()) << txfs_result.error().ToString(); \
  } while (false)
#define EXPECT_ERRNO(expression, code)                                        \
  EXPECT_EQ(::txfs::testing::ErrnoName(::txfs::testing::ErrnoOf(expression)), \
            #code)

/// Runs the tests of `suite` with every driver that has what it needs.
#define FOR_DRIVERS(suite, needs)                               \
  INSTANTIATE_TEST_SUITE_P(                                     \
      Drivers, suite,                                           \
      ::testing::ValuesIn(::txfs::testing::DriverKinds(needs)), \
      [](const auto& test) { return test.param.name; })
#define FOR_EVERY_DRIVER(suite) \
  FOR_DRIVERS(suite, ::txfs::testing::Needs::kNothing)

}  // namespace txfs::testing

// Files without a name (O_TMPFILE).

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/mount_driver.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

using ::std::string;

class UnnamedTest : public ConformanceTest {
 protected:
  void SetUp() override { base().File("d/f", "old"); }

  Handle Unnamed(int flags = 0) {
    return Open("d", O_TMPFILE | O_RDWR | flags);
  }
  void Write(Handle handle, uint64_t offset, const string& bytes) {
    ASSERT_OK(fs().WriteAt(handle, offset, bytes));
  }
  string Read(Handle handle, size_t length) {
    auto content = fs().ReadAt(handle, 0, length);
    EXPECT_OK(content);
    return std::move(content).value_or("");
  }
};
FOR_EVERY_DRIVER(UnnamedTest);

/// Larger than what shares a segment of the spool with others.
const string kLarge = string(1 << 20, 'l') + string(1 << 20, 'r');

TEST_P(UnnamedTest, AFileWithoutANameGoesWithItsDescriptor) {
  const Handle handle = Unnamed();
  Write(handle, 0, "small");
  Write(handle, 5, kLarge);
  const auto st = fs().StatOf(handle);
  ASSERT_OK(st);
  EXPECT_EQ(st->st_nlink, 0u);
  EXPECT_EQ(st->st_mode, S_IFREG | 0644u);
  EXPECT_EQ(static_cast<size_t>(st->st_size), 5 + kLarge.size());
  EXPECT_EQ(Read(handle, 6), "smalll");
  EXPECT_EQ(Names("d"), std::vector<string>{"f"});
  ASSERT_OK(fs().Close(handle));
}

TEST_P(UnnamedTest, ALinkGivesItAName) {
  const Handle handle = Unnamed();
  Write(handle, 0, "small");
  Write(handle, 5, kLarge);
  EXPECT_ERRNO(fs().LinkOf(handle, "d/f"), EEXIST);
  ASSERT_OK(fs().LinkOf(handle, "d/new"));
  EXPECT_EQ(St("d/new").st_nlink, 1u);
  EXPECT_EQ(St("d/new").st_ino, fs().StatOf(handle)->st_ino);
  EXPECT_EQ(Content("d/new"), "small" + kLarge);
  Write(handle, 0, "SMALL");
  Write(handle, 5 + kLarge.size(), kLarge);
  ASSERT_OK(fs().Link("d/new", "second"));
  ASSERT_OK(fs().Close(handle));
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Content("d/new"), "SMALL" + kLarge + kLarge);
  EXPECT_EQ(St("second").st_nlink, 2u);
}

TEST_P(UnnamedTest, AnEmptyOneGetsANameAndContentAfterwards) {
  const Handle handle = Unnamed();
  ASSERT_OK(fs().LinkOf(handle, "new"));
  Write(handle, 0, "content");
  ASSERT_OK(fs().Close(handle));
  EXPECT_EQ(Content("new"), "content");
}

TEST_P(UnnamedTest, AnExclusiveOneGetsNoName) {
  const Handle handle = Unnamed(O_EXCL);
  Write(handle, 0, "content");
  EXPECT_ERRNO(fs().LinkOf(handle, "new"), ENOENT);
  ASSERT_OK(fs().Close(handle));
}

class UnnamedStoreTest : public UnnamedTest {};
FOR_DRIVERS(UnnamedStoreTest, Needs::kStore);

TEST_P(UnnamedStoreTest, ItOutlivesTransactions) {
  const Handle handle = Unnamed();
  Write(handle, 0, "first");
  ASSERT_OK(fs().WriteFile("other", "1"));
  Commit();
  Write(handle, 5, "second");
  ASSERT_OK(fs().WriteFile("other", "2"));
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(Content("other"), "1");
  ASSERT_OK(fs().LinkOf(handle, "new"));
  ASSERT_OK(fs().Close(handle));
  EXPECT_EQ(Content("new"), "firstsecond");
}

TEST_P(UnnamedStoreTest, ARollbackTakesTheNameAway) {
  const Handle handle = Unnamed();
  Write(handle, 0, "content");
  ASSERT_OK(fs().MakeSavepoint("before"));
  ASSERT_OK(fs().LinkOf(handle, "new"));
  ASSERT_OK(fs().Rollback("before"));
  EXPECT_ERRNO(fs().Stat("new"), ENOENT);
  EXPECT_EQ(Read(handle, 7), "content");
  ASSERT_OK(fs().Close(handle));
}

TEST_P(UnnamedStoreTest, RulesJudgeTheName) {
  ASSERT_OK(fs().UsePolicy(R"(
schema = 1
[[fs]]
id = "closed"
path = "closed"
ops = ["make"]
reason = "closed"
suggest = "another name"
)"));
  const Handle handle = Unnamed();
  Write(handle, 0, "content");
  EXPECT_ERRNO(fs().LinkOf(handle, "closed"), EPERM);
  EXPECT_OK(fs().LinkOf(handle, "open"));
  ASSERT_OK(fs().Close(handle));
}

/// A daemon that is killed has none of them when it comes back.
TEST(UnnamedCrashTest, NothingIsLeft) {
  if (!CanMount()) GTEST_SKIP() << "needs a mount";
  const TempDir scratch;
  const BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  auto started = MountDriver::Start(base.root(), scratch.path() + "/mnt");
  ASSERT_OK(started);
  auto& mount = static_cast<MountDriver&>(**started);
  ASSERT_OK(mount.WriteFile("kept", "kept"));
  const auto before = mount.StoreBytes();
  ASSERT_OK(before);
  const auto handle = mount.Open("", O_TMPFILE | O_RDWR, 0644);
  ASSERT_OK(handle);
  for (int i = 0; i < 8; ++i) {
    const auto at = static_cast<uint64_t>(i) * kLarge.size();
    ASSERT_OK(mount.WriteAt(*handle, at, kLarge));
  }
  mount.Kill();
  std::ignore = mount.Close(*handle);
  ASSERT_OK(mount.Mount());
  EXPECT_EQ(*mount.Names(""), std::vector<string>{"kept"});
  const auto after = mount.StoreBytes();
  ASSERT_OK(after);
  EXPECT_LT(*after, *before + kLarge.size());
  EXPECT_EQ(FindProblems(base.root()), "");
}

}  // namespace
}  // namespace txfs::testing

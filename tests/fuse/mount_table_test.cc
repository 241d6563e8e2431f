#include "fs/host/mount_table.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "fs/fuse/fuse_mount.h"

namespace txfs {
namespace {

/// As `uid` made it.
std::string MadeBy(uid_t uid) {
  return "user_id=" + std::to_string(uid) + ",group_id=0";
}

const std::string kOwn = MadeBy(::geteuid());
const std::string kTable =
    "22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
    "nonsense\n"
    "40 22 0:35 / /ws rw,nosuid - fuse.txfs /ws rw," +
    kOwn +
    "\n"
    "41 40 0:36 / /ws/in\\040side rw - fuse.txfs /a\\134b rw," +
    kOwn +
    "\n"
    "42 22 0:37 / /ws rw,noatime - fuse.txfs upper rw," +
    kOwn + "\n43 22 0:38 / /wsx rw - fuse.other x rw," + kOwn + "\n";

TEST(MountTable, IsParsedWithEscapesAndOptionalFields) {
  const auto table = ParseMountTable(kTable);
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table[0].type, "ext4");
  EXPECT_EQ(table[0].device(), ::makedev(254, 0));
  EXPECT_EQ(table[2].mountpoint, "/ws/in side");
  EXPECT_EQ(table[2].source, "/a\\b");
  EXPECT_EQ(table[1].options, "rw,nosuid,rw," + kOwn);
  EXPECT_EQ(table[1].owner, ::geteuid());
  EXPECT_FALSE(table[0].owner);
}

TEST(MountTable, NoTextBreaksTheParser) {
  for (size_t n = 0; n <= kTable.size(); ++n) {
    EXPECT_LE(ParseMountTable(kTable.substr(0, n)).size(), 5U);
    EXPECT_LE(ParseMountTable(kTable.substr(n)).size(), 6U);
  }
}

TEST(MountTable, InnermostAndTopmostTxfsMountIsFound) {
  const auto table = ParseMountTable(kTable);
  const struct {
    const char* path;
    const char* source;
  } cases[] = {
      {"/ws", "upper"},
      {"/ws/", "upper"},
      {"/ws/deep/er", "upper"},
      {"/ws/in side/x", "/a\\b"},
      {"/ws/in side/../y", "upper"},
      {"/wsx", ""},
      {"/", ""},
  };
  for (const auto& c : cases) {
    const auto found = FindTxfsMount(table, c.path);
    EXPECT_EQ(found ? found->source : "", c.source) << c.path;
  }
}

TEST(MountTable, OnlyTheCallersMountsCount) {
  const uid_t other = ::geteuid() + 1;
  const std::string line = "40 22 0:35 / /ws rw - fuse.txfs ";
  const struct {
    std::string text;
    bool is_own;
  } cases[] = {
      {"/ws rw," + kOwn, true},
      {"/ws rw," + MadeBy(other), false},
      // No word of the mounter's passes for the kernel's.
      {kOwn + " rw," + MadeBy(other), false},
      {"a\\040rw," + kOwn + " rw," + MadeBy(other), false},
      {"/ws rw,x" + kOwn, false},
      {"/ws rw,user_id=", false},
      {"/ws rw,user_id=99999999999999", false},
      {"/ws rw", false},
  };
  for (const auto& c : cases) {
    const auto table = ParseMountTable(line + c.text + "\n");
    ASSERT_EQ(table.size(), 1U) << c.text;
    EXPECT_EQ(table[0].is_own(), c.is_own) << c.text;
    EXPECT_EQ(FindTxfsMount(table, "/ws/x").has_value(), c.is_own) << c.text;
  }
  const auto bound =
      ParseMountTable("40 22 0:35 / /ws rw," + kOwn + " - fuse.txfs /ws rw\n");
  EXPECT_FALSE(bound.at(0).is_own());
}

/// How many mounts this process sees at `path`.
int64_t CountAt(const std::string& path) {
  const auto table = ReadMountTable();
  return table ? std::ranges::count(*table, path, &MountEntry::mountpoint) : -1;
}

/// In a process that keeps its table: mounts of its own. Returns its exit code.
int SeesItsMounts(const std::string& path) {
  constexpr int kCannot = 77;
  const int spaces =
      ::geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWNS | CLONE_NEWUSER;
  if (::unshare(spaces) != 0) return kCannot;
  KeepMountTable(true);
  if (CountAt(path) != 0) return 1;
  for (int round = 0; round < 3; ++round) {
    ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (::mount("none", path.c_str(), "tmpfs", 0, nullptr) != 0) return kCannot;
    for (int look = 0; look < 2; ++look) {
      if (CountAt(path) != 1) return 2;
    }
    const pid_t child = ::fork();
    if (child == 0) ::_exit(::umount(path.c_str()) == 0 ? CountAt(path) : 9);
    int status = 0;
    ::waitpid(child, &status, 0);
    if (status != 0) return 3;
    if (CountAt(path) != 0) return 4;
  }
  return 0;
}

TEST(MountTable, IsNewWhateverMountsAndForks) {
  std::string path = ::testing::TempDir() + "txfs-table.XXXXXX";
  ASSERT_NE(::mkdtemp(path.data()), nullptr);
  ASSERT_EQ(CountAt(path), 0);
  const pid_t child = ::fork();
  if (child == 0) ::_exit(SeesItsMounts(path));
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ::rmdir(path.c_str());
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(CountAt(path), 0);
}

TEST(FusermountOptions, EscapesTheSourceAndDropsWhatItDoesNotKnow) {
  MountOptions options;
  options.source = "/a,b\\c";
  options.allow_other = true;
  options.read_only = true;
  options.kernel_options = {"noatime", "relatime", "suid", "nosymfollow"};
  EXPECT_EQ(FusermountOptions(options),
            "default_permissions,subtype=txfs,fsname=/a\\,b\\\\c,allow_other,"
            "noatime,ro");
}

}  // namespace
}  // namespace txfs

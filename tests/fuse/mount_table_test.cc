#include "fs/mount_table.h"

#include <gtest/gtest.h>
#include <sys/sysmacros.h>

#include "fs/fuse_mount.h"

namespace txfs {
namespace {

constexpr std::string_view kTable =
    "22 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw\n"
    "nonsense\n"
    "40 22 0:35 / /ws rw,nosuid - fuse.txfs /ws rw,user_id=0\n"
    "41 40 0:36 / /ws/in\\040side rw - fuse.txfs /a\\134b rw\n"
    "42 22 0:37 / /ws rw,noatime - fuse.txfs upper rw\n"
    "43 22 0:38 / /wsx rw - fuse.other x rw\n";

TEST(MountTable, IsParsedWithEscapesAndOptionalFields) {
  const auto table = ParseMountTable(kTable);
  ASSERT_EQ(table.size(), 5U);
  EXPECT_EQ(table[0].type, "ext4");
  EXPECT_EQ(table[0].device(), ::makedev(254, 0));
  EXPECT_EQ(table[2].mountpoint, "/ws/in side");
  EXPECT_EQ(table[2].source, "/a\\b");
  EXPECT_EQ(table[1].options, "rw,nosuid,rw,user_id=0");
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

TEST(FusermountOptions, EscapesTheSourceAndDropsWhatItDoesNotKnow) {
  MountOptions options;
  options.source = "/a,b\\c";
  options.allow_other = true;
  options.read_only = true;
  options.kernel_options = {"noatime", "relatime"};
  EXPECT_EQ(FusermountOptions(options),
            "default_permissions,subtype=txfs,fsname=/a\\,b\\\\c,allow_other,"
            "noatime,ro");
}

}  // namespace
}  // namespace txfs

#include "fs/host/mounted_object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace txfs {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

/// The places of what `path` leads to.
std::vector<std::string> PlacesOfPath(std::string_view mountinfo,
                                      const std::string& path) {
  const auto table = ParseMountTable(mountinfo);
  const auto object = ObjectShownAt(table, path);
  return object ? PlacesOf(table, *object) : std::vector<std::string>();
}

constexpr std::string_view kRoot =
    "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n";

TEST(MountedObject, RootOfAMountIsParsedWithEscapes) {
  const auto table = ParseMountTable(
      "30 22 254:0 /home/a\\040b /mnt\\134 rw - ext4 /dev/vda rw\n");
  ASSERT_EQ(table.size(), 1U);
  EXPECT_EQ(table[0].root, "/home/a b");
  EXPECT_EQ(table[0].mountpoint, "/mnt\\");
}

TEST(MountedObject, IsShownByEachBindMountOfADirectoryAboveIt) {
  const std::string table = std::string(kRoot) +
                            "30 22 254:0 /home /mnt/homes rw - ext4 x rw\n"
                            "31 22 254:0 / /mnt/all rw - ext4 x rw\n"
                            "32 22 254:0 /home/me/ws /srv rw - ext4 x rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home/me/ws/src"),
              UnorderedElementsAre("/home/me/ws/src", "/mnt/homes/me/ws/src",
                                   "/mnt/all/home/me/ws/src", "/srv/src"));
  EXPECT_THAT(PlacesOfPath(table, "/mnt/homes/me/ws/src"),
              UnorderedElementsAre("/home/me/ws/src", "/mnt/homes/me/ws/src",
                                   "/mnt/all/home/me/ws/src", "/srv/src"));
  EXPECT_THAT(PlacesOfPath(table, "/home/me/wsx"),
              UnorderedElementsAre("/home/me/wsx", "/mnt/homes/me/wsx",
                                   "/mnt/all/home/me/wsx"));
}

TEST(MountedObject, IsShownInPartByABindMountOfWhatLiesInIt) {
  const std::string table =
      std::string(kRoot) + "30 22 254:0 /home/me/ws/src /srv rw - ext4 x rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home/me/ws"),
              UnorderedElementsAre("/home/me/ws", "/srv"));
  EXPECT_THAT(PlacesOfPath(table, "/home/me/w"), ElementsAre("/home/me/w"));
}

TEST(MountedObject, IsNotShownWhereAnotherMountCoversIt) {
  const std::string table = std::string(kRoot) +
                            "30 22 254:0 /home /mnt rw - ext4 x rw\n"
                            "31 30 0:40 / /mnt/me rw - tmpfs none rw\n"
                            "32 22 254:0 /home /srv rw - ext4 x rw\n"
                            "33 32 0:41 / /srv rw - tmpfs none rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home/me/ws"), ElementsAre("/home/me/ws"));
  EXPECT_THAT(PlacesOfPath(table, "/home/you"),
              UnorderedElementsAre("/home/you", "/mnt/you"));
}

TEST(MountedObject, IsShownWhereItWasMountedOverWhatCoversIt) {
  const std::string table = std::string(kRoot) +
                            "30 22 254:0 /home /mnt rw - ext4 x rw\n"
                            "31 30 0:40 / /mnt rw - tmpfs none rw\n"
                            "32 31 254:0 /home /mnt/a rw - ext4 x rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home/me"),
              UnorderedElementsAre("/home/me", "/mnt/a/me"));
}

TEST(MountedObject, IsOfTheFilesystemThatIsMountedLast) {
  const std::string table = std::string(kRoot) +
                            "30 22 0:50 / /ws rw - fuse.txfs /ws rw\n"
                            "31 22 254:0 /ws /mnt rw - ext4 x rw\n"
                            "32 22 0:50 / /srv rw - fuse.txfs /ws rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/ws/a"),
              UnorderedElementsAre("/ws/a", "/srv/a"));
  EXPECT_THAT(PlacesOfPath(table, "/mnt/a"), ElementsAre("/mnt/a"));
}

TEST(MountedObject, IsAnotherInAnotherFilesystem) {
  const std::string table = std::string(kRoot) +
                            "30 22 254:1 / /mnt rw - ext4 y rw\n"
                            "31 22 0:40 /home /srv rw - tmpfs none rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home"), ElementsAre("/home"));
  EXPECT_THAT(PlacesOfPath(table, "/mnt/home"), ElementsAre("/mnt/home"));
}

TEST(MountedObject, IsNamedByItsPathInTheFilesystem) {
  const auto table = ParseMountTable(
      "22 1 0:25 /@ / rw - btrfs /dev/vda rw\n"
      "30 22 0:25 /@home /home rw - btrfs /dev/vda rw\n"
      "31 22 0:25 / /mnt rw - btrfs /dev/vda rw\n");
  const auto object = ObjectShownAt(table, "/home/me");
  ASSERT_TRUE(object);
  EXPECT_EQ(object->path, "/@home/me");
  EXPECT_EQ(object->minor, 25U);
  EXPECT_THAT(PlacesOf(table, *object),
              UnorderedElementsAre("/home/me", "/mnt/@home/me"));
}

TEST(MountedObject, IsFoundInAChrootThatIsNoMountpoint) {
  const std::string table =
      "30 22 254:0 /home /home rw - ext4 x rw\n"
      "31 22 254:0 /home/me /mnt rw - ext4 x rw\n"
      "32 30 0:40 / /home/me/t rw - tmpfs none rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home/me/ws"),
              UnorderedElementsAre("/home/me/ws", "/mnt/ws"));
  EXPECT_THAT(PlacesOfPath(table, "/etc"), IsEmpty());
}

TEST(MountedObject, LookupsAreNotInWhatCoversTheRootDirectory) {
  const std::string table = std::string(kRoot) +
                            "30 22 0:40 / / rw - tmpfs none rw\n"
                            "31 22 254:0 /home /mnt rw - ext4 x rw\n";
  EXPECT_THAT(PlacesOfPath(table, "/home"),
              UnorderedElementsAre("/home", "/mnt"));
  EXPECT_THAT(PlacesOfPath(table, "/"), UnorderedElementsAre("/", "/mnt"));
}

TEST(MountedObject, ATableWithACircleIsNoEndlessWay) {
  const auto table = ParseMountTable(
      "22 1 254:0 / / rw - ext4 x rw\n"
      "30 22 254:0 /a /a rw - ext4 x rw\n"
      "31 30 254:0 /a /a rw - ext4 x rw\n"
      "30 31 254:0 /a /a rw - ext4 x rw\n");
  EXPECT_NE(MountShownAt(table, "/a"), nullptr);
}

}  // namespace
}  // namespace txfs

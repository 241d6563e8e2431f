#include <fcntl.h>
#include <linux/posix_acl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "fs/host/xattrs.h"
#include "journal/support/bytes.h"
#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;

struct AclLine {
  uint16_t tag, permissions;
  uint32_t id = UINT32_MAX;
};

/// The attribute that stands for an access control list.
string AclOf(const std::vector<AclLine>& lines) {
  Bytes bytes;
  Encoder out(bytes);
  out.Put(uint32_t{2});
  for (const AclLine& line : lines) {
    out.Put(line.tag);
    out.Put(line.permissions);
    out.Put(line.id);
  }
  return string(AsText(bytes));
}

/// The list by which user 1000 has `user`, the owning group `group`, and others
/// `other`, with the mask `mask`. The owner may read and write.
string AclFor1000(uint16_t user, uint16_t group, uint16_t mask,
                  uint16_t other) {
  return AclOf({{ACL_USER_OBJ, 6},
                {ACL_USER, user, 1000},
                {ACL_GROUP_OBJ, group},
                {ACL_MASK, mask},
                {ACL_OTHER, other}});
}

class AclTest : public ConformanceTest {
 protected:
  string Access(const string& path) {
    return fs().GetXattr(path, kAccessAcl).value_or("none");
  }
  string Default(const string& path) {
    return fs().GetXattr(path, kDefaultAcl).value_or("none");
  }
  mode_t Mode(const string& path) { return St(path).st_mode & 07777; }
};
FOR_EVERY_DRIVER(AclTest);

TEST_P(AclTest, AListSetsTheModeAndIsListed) {
  ASSERT_OK(fs().WriteFile("f", "x"));
  ASSERT_OK(fs().SetXattr("f", kAccessAcl, AclFor1000(7, 4, 5, 1), 0));
  EXPECT_EQ(Access("f"), AclFor1000(7, 4, 5, 1));
  EXPECT_EQ(Mode("f"), 0651u);
  const auto names = fs().ListXattrs("f");
  ASSERT_OK(names);
  EXPECT_EQ(std::ranges::count(*names, kAccessAcl), 1);
}

TEST_P(AclTest, OfTheBaseIsSeenAndFollowsTheMode) {
  base().File("d/f", "x");
  base().Xattr("d/f", kAccessAcl, AclFor1000(7, 7, 6, 4));
  base().Xattr("d/f", "user.k", "v");
  EXPECT_EQ(Access("d/f"), AclFor1000(7, 7, 6, 4));
  EXPECT_EQ(Mode("d/f"), 0664u);
  ASSERT_OK(fs().Chmod("d/f", 0640));
  EXPECT_EQ(Access("d/f"), AclFor1000(7, 7, 4, 0));
  ASSERT_OK(fs().SetXattr("d/f", "user.k", "w", 0));
  ASSERT_OK(fs().Chmod("d/f", 0660));
  EXPECT_EQ(Access("d/f"), AclFor1000(7, 7, 6, 0));
}

TEST_P(AclTest, OfTheBaseStaysWithChangedContent) {
  base().File("f", "x");
  base().Xattr("f", kAccessAcl, AclFor1000(0, 4, 4, 4));
  ASSERT_OK(fs().PatchFile("f", 0, "y"));
  EXPECT_EQ(Access("f"), AclFor1000(0, 4, 4, 4));
  ASSERT_OK(fs().Rename("f", "g", 0));
  EXPECT_EQ(Access("g"), AclFor1000(0, 4, 4, 4));
}

TEST_P(AclTest, AListThatTheModeSaysIsNotKept) {
  base().File("f", "x");
  base().Xattr("f", kAccessAcl, AclFor1000(7, 7, 7, 4));
  base().File("g", "x");
  const string minimal =
      AclOf({{ACL_USER_OBJ, 6}, {ACL_GROUP_OBJ, 2}, {ACL_OTHER, 1}});
  for (const string name : {"f", "g"}) {
    ASSERT_OK(fs().SetXattr(name, kAccessAcl, minimal, 0));
    EXPECT_EQ(Access(name), "none") << name;
    EXPECT_EQ(Mode(name), 0621u) << name;
  }
}

TEST_P(AclTest, ARemovedListLeavesTheMode) {
  base().File("f", "x");
  base().Xattr("f", kAccessAcl, AclFor1000(7, 7, 6, 4));
  ASSERT_OK(fs().RemoveXattr("f", kAccessAcl));
  EXPECT_EQ(Access("f"), "none");
  EXPECT_EQ(Mode("f"), 0664u);
}

TEST_P(AclTest, NewEntriesInheritTheDefaultList) {
  const string list = AclOf({{ACL_USER_OBJ, 7},
                             {ACL_USER, 6, 1000},
                             {ACL_GROUP_OBJ, 5},
                             {ACL_MASK, 7},
                             {ACL_OTHER, 3}});
  base().Directory("d");
  base().Xattr("d", kDefaultAcl, list);
  // The umask, 022, does not count there.
  ASSERT_OK(fs().Mkdir("d/sub", 0777));
  ASSERT_OK(fs().WriteFile("d/sub/f", "x"));
  ASSERT_OK(fs().Mkfifo("d/p", 0622));
  ASSERT_OK(fs().Symlink("f", "d/link"));
  EXPECT_EQ(Mode("d/sub"), 0773u);
  EXPECT_EQ(Access("d/sub"), list);
  EXPECT_EQ(Default("d/sub"), list);
  EXPECT_EQ(Mode("d/sub/f"), 0640u);
  EXPECT_EQ(Access("d/sub/f"), AclOf({{ACL_USER_OBJ, 6},
                                      {ACL_USER, 6, 1000},
                                      {ACL_GROUP_OBJ, 5},
                                      {ACL_MASK, 4},
                                      {ACL_OTHER, 0}}));
  EXPECT_EQ(Default("d/sub/f"), "none");
  EXPECT_EQ(Mode("d/p"), 0622u);
}

TEST_P(AclTest, AMinimalDefaultListIsAMask) {
  const string list =
      AclOf({{ACL_USER_OBJ, 7}, {ACL_GROUP_OBJ, 5}, {ACL_OTHER, 0}});
  ASSERT_OK(fs().Mkdir("d", 0755));
  ASSERT_OK(fs().SetXattr("d", kDefaultAcl, list, 0));
  ASSERT_OK(fs().WriteFile("d/f", "x"));
  ASSERT_OK(fs().Mkdir("d/sub", 0777));
  EXPECT_EQ(Mode("d/f"), 0640u);
  EXPECT_EQ(Access("d/f"), "none");
  EXPECT_EQ(Mode("d/sub"), 0750u);
  EXPECT_EQ(Default("d/sub"), list);
  ASSERT_OK(fs().RemoveXattr("d", kDefaultAcl));
  ASSERT_OK(fs().WriteFile("d/g", "x"));
  EXPECT_EQ(Mode("d/g"), 0644u);
}

TEST_P(AclTest, ACommittedFileInheritsNothingFromTheStore) {
  base().Directory("d");
  // The store of the tests lies in the root.
  base().Xattr("", kDefaultAcl, AclFor1000(7, 7, 7, 7));
  ASSERT_OK(fs().WriteFile("d/small", "x"));
  ASSERT_OK(fs().WriteFile("d/large", string(3 << 20, 'x')));
  ASSERT_OK(fs().Mkdir("d/sub", 0755));
  ASSERT_OK(fs().WriteFile("d/sub/f", "x"));
  if (fs().has_base()) Commit();
  for (const string path : {"d/small", "d/large", "d/sub", "d/sub/f"}) {
    EXPECT_EQ(Access(path), "none") << path;
    EXPECT_EQ(Default(path), "none") << path;
  }
  EXPECT_EQ(Mode("d/large"), 0644u);
}

TEST_P(AclTest, BadListsAreRefused) {
  base().File("f", "x");
  const string no_mask = AclOf({{ACL_USER_OBJ, 6},
                                {ACL_USER, 6, 1000},
                                {ACL_GROUP_OBJ, 5},
                                {ACL_OTHER, 0}});
  EXPECT_ERRNO(fs().SetXattr("f", kAccessAcl, no_mask, 0), EINVAL);
  EXPECT_ERRNO(fs().SetXattr("f", kDefaultAcl, AclFor1000(6, 5, 6, 0), 0),
               EACCES);
}

TEST_P(AclTest, ADiscardShowsTheListOfTheBase) {
  base().File("f", "x");
  base().Xattr("f", kAccessAcl, AclFor1000(7, 7, 6, 4));
  if (!fs().has_base()) GTEST_SKIP() << "it has no transaction";
  ASSERT_OK(fs().SetXattr("f", kAccessAcl, AclFor1000(0, 4, 4, 4), 0));
  EXPECT_EQ(Access("f"), AclFor1000(0, 4, 4, 4));
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(Access("f"), AclFor1000(7, 7, 6, 4));
  EXPECT_EQ(Mode("f"), 0664u);
}

/// The kernel decides who is admitted.
class AclAccessTest : public AclTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root";
  }
  int ReadAs1000(const string& path) {
    fs().ActAs(1000, 1000);
    const auto content = fs().ReadFile(path);
    fs().ActAs(0, 0);
    return ErrnoOf(content);
  }
};
FOR_DRIVERS(AclAccessTest, Needs::kKernel);

TEST_P(AclAccessTest, ListsOfTheBaseAreEnforced) {
  base().File("closed", "x");
  base().Xattr("closed", kAccessAcl, AclFor1000(0, 4, 4, 4));
  base().File("opened", "x");
  base().Xattr("opened", kAccessAcl, AclFor1000(4, 0, 4, 0));
  base().File("masked", "x");
  base().Xattr("masked", kAccessAcl, AclFor1000(6, 6, 2, 0));
  EXPECT_EQ(ReadAs1000("closed"), EACCES);
  EXPECT_EQ(ReadAs1000("opened"), 0);
  EXPECT_EQ(ReadAs1000("masked"), EACCES);
}

TEST_P(AclAccessTest, ListsOfTheTransactionAreEnforcedUntilItsEnd) {
  base().File("f", "x");
  EXPECT_EQ(ReadAs1000("f"), 0);
  ASSERT_OK(fs().SetXattr("f", kAccessAcl, AclFor1000(0, 4, 4, 4), 0));
  EXPECT_EQ(ReadAs1000("f"), EACCES);
  ASSERT_OK(fs().Chmod("f", 0604));
  ASSERT_OK(fs().Chmod("f", 0644));
  EXPECT_EQ(ReadAs1000("f"), EACCES);
  if (!fs().has_base()) return;
  ASSERT_OK(fs().MakeSavepoint("s"));
  ASSERT_OK(fs().RemoveXattr("f", kAccessAcl));
  EXPECT_EQ(ReadAs1000("f"), 0);
  ASSERT_OK(fs().Rollback("s"));
  EXPECT_EQ(ReadAs1000("f"), EACCES);
  ASSERT_OK(fs().Discard());
  EXPECT_EQ(ReadAs1000("f"), 0);
}

TEST_P(AclAccessTest, AnInheritedListIsEnforced) {
  base().Directory("d");
  base().Xattr("d", kDefaultAcl, AclFor1000(0, 4, 4, 4));
  ASSERT_OK(fs().WriteFile("d/f", "x"));
  EXPECT_EQ(ReadAs1000("d/f"), EACCES);
  if (fs().has_base()) Commit();
  EXPECT_EQ(ReadAs1000("d/f"), EACCES);
}

}  // namespace
}  // namespace txfs::testing

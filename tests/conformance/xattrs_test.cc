#include <sys/xattr.h>

#include <algorithm>
#include <string>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

class XattrsTest : public ConformanceTest {
 protected:
  /// Attributes of the user's, by name; others, such as labels, may be there.
  vector<string> UserNames(const string& path) {
    auto names = fs().ListXattrs(path);
    EXPECT_TRUE(names.has_value()) << ErrnoName(ErrnoOf(names));
    vector<string> users;
    if (!names) return users;
    for (const string& name : *names) {
      if (name.starts_with("user.")) users.push_back(name);
    }
    std::sort(users.begin(), users.end());
    return users;
  }
};
FOR_EVERY_DRIVER(XattrsTest);

TEST_P(XattrsTest, AreSetReplacedAndRemoved) {
  ASSERT_OK(fs().WriteFile("f", ""));
  ASSERT_OK(fs().SetXattr("f", "user.a", "1", 0));
  ASSERT_OK(fs().SetXattr("f", "user.b", string("\0\xff", 2), 0));
  ASSERT_OK(fs().SetXattr("f", "user.a", "two", 0));
  EXPECT_EQ(fs().GetXattr("f", "user.a").value_or("?"), "two");
  EXPECT_EQ(fs().GetXattr("f", "user.b").value_or("?"), string("\0\xff", 2));
  EXPECT_EQ(UserNames("f"), (vector<string>{"user.a", "user.b"}));
  ASSERT_OK(fs().RemoveXattr("f", "user.a"));
  EXPECT_EQ(UserNames("f"), vector<string>{"user.b"});
}

TEST_P(XattrsTest, OfTheBaseAreSeenAndCanBeChanged) {
  base().File("f", "x");
  base().Directory("d");
  base().Xattr("f", "user.keep", "kept");
  base().Xattr("f", "user.change", "old");
  base().Xattr("f", "user.remove", "gone");
  base().Xattr("d", "user.dir", "d");
  EXPECT_EQ(UserNames("f"),
            (vector<string>{"user.change", "user.keep", "user.remove"}));
  ASSERT_OK(fs().SetXattr("f", "user.change", "new", XATTR_REPLACE));
  ASSERT_OK(fs().RemoveXattr("f", "user.remove"));
  EXPECT_EQ(fs().GetXattr("f", "user.keep").value_or("?"), "kept");
  EXPECT_EQ(fs().GetXattr("f", "user.change").value_or("?"), "new");
  EXPECT_ERRNO(fs().GetXattr("f", "user.remove"), ENODATA);
  EXPECT_EQ(UserNames("f"), (vector<string>{"user.change", "user.keep"}));
  EXPECT_EQ(fs().GetXattr("d", "user.dir").value_or("?"), "d");
}

TEST_P(XattrsTest, FollowARename) {
  base().File("a/f", "x");
  base().Xattr("a/f", "user.k", "v");
  ASSERT_OK(fs().Rename("a", "b", 0));
  EXPECT_EQ(fs().GetXattr("b/f", "user.k").value_or("?"), "v");
  ASSERT_OK(fs().PatchFile("b/f", 0, "y"));
  EXPECT_EQ(fs().GetXattr("b/f", "user.k").value_or("?"), "v");
}

TEST_P(XattrsTest, CreateAndReplaceLookAtWhatIsThere) {
  base().File("f", "");
  base().Xattr("f", "user.base", "1");
  EXPECT_ERRNO(fs().SetXattr("f", "user.base", "2", XATTR_CREATE), EEXIST);
  EXPECT_ERRNO(fs().SetXattr("f", "user.absent", "2", XATTR_REPLACE), ENODATA);
  EXPECT_OK(fs().SetXattr("f", "user.absent", "2", XATTR_CREATE));
  EXPECT_ERRNO(fs().RemoveXattr("f", "user.never"), ENODATA);
  EXPECT_ERRNO(fs().GetXattr("f", "user.never"), ENODATA);
}

TEST_P(XattrsTest, EmptyAndLargeValuesAreKept) {
  ASSERT_OK(fs().WriteFile("f", ""));
  ASSERT_OK(fs().SetXattr("f", "user.empty", "", 0));
  ASSERT_OK(fs().SetXattr("f", "user.large", string(2000, 'x'), 0));
  EXPECT_EQ(fs().GetXattr("f", "user.empty").value_or("?"), "");
  EXPECT_EQ(fs().GetXattr("f", "user.large").value_or("?"), string(2000, 'x'));
}

TEST_P(XattrsTest, OfTheUserAreForFilesAndDirectoriesOnly) {
  base().Symlink("nowhere", "link");
  base().Fifo("p");
  EXPECT_ERRNO(fs().SetXattr("link", "user.k", "v", 0), EPERM);
  EXPECT_ERRNO(fs().SetXattr("p", "user.k", "v", 0), EPERM);
}

TEST_P(XattrsTest, SettingChangesTheCtimeOnly) {
  base().File("f", "x");
  ASSERT_OK(fs().SetXattr("f", "user.k", "v", 0));
  EXPECT_EQ(Timestamp::From(St("f").st_mtim), kBaseTime);
  EXPECT_GT(St("f").st_ctim.tv_sec, kBaseTime.sec);
}

}  // namespace
}  // namespace txfs::testing

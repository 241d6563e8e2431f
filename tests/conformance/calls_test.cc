#include <fcntl.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// Each test makes calls "1", "2", ... and reverts the first.
class CallsTest : public ConformanceTest {
 protected:
  void Call(const string& id) { ASSERT_OK(fs().MarkCall(id, false)); }
  void End(const string& id) { ASSERT_OK(fs().MarkCall(id, true)); }
  /// The paths built on the call.
  vector<string> Revert(const string& id) {
    const auto built_on = fs().RevertCall(id);
    EXPECT_OK(built_on);
    return built_on.value_or(vector<string>{"?"});
  }
  void ExpectReverted(const string& id) {
    EXPECT_EQ(Revert(id), vector<string>{});
  }
  TreeView View() {
    auto view = ViewTree(fs());
    EXPECT_OK(view);
    return std::move(view).value_or(TreeView{});
  }
  /// Nothing changes when the call is to be reverted.
  void ExpectBuiltOn(const string& id, const vector<string>& paths) {
    const TreeView before = View();
    EXPECT_EQ(Revert(id), paths);
    EXPECT_EQ(Compare(before, View(), {}), "") << "a refused revert";
  }
};
FOR_DRIVERS(CallsTest, Needs::kStore);

TEST_P(CallsTest, ARevertTakesBackOneCallAndKeepsLaterOnes) {
  base().File("d/changed", "old");
  base().File("d/deleted", "deleted");
  base().File("d/moved", "moved");
  base().File("d/later", "old");
  Call("1");
  ASSERT_OK(fs().WriteFile("d/changed", "new and longer"));
  ASSERT_OK(fs().Chmod("d/changed", 0600));
  ASSERT_OK(fs().Unlink("d/deleted"));
  ASSERT_OK(fs().Rename("d/moved", "elsewhere", 0));
  ASSERT_OK(fs().WriteFile("d/made", string(100000, 'm')));
  ASSERT_OK(fs().Mkdir("dir", 0755));
  ASSERT_OK(fs().WriteFile("dir/made", "made"));
  Call("2");
  ASSERT_OK(fs().WriteFile("d/later", "later"));
  ASSERT_OK(fs().WriteFile("d/also", "also"));

  ExpectReverted("1");

  EXPECT_EQ(Names(""), vector<string>{"d"});
  EXPECT_EQ(Names("d"),
            (vector<string>{"also", "changed", "deleted", "later", "moved"}));
  EXPECT_EQ(Content("d/changed"), "old");
  EXPECT_EQ(St("d/changed").st_mode & 07777, 0644u);
  EXPECT_EQ(Content("d/deleted"), "deleted");
  EXPECT_EQ(Content("d/moved"), "moved");
  EXPECT_EQ(Content("d/later"), "later");
  EXPECT_EQ(Content("d/also"), "also");
}

TEST_P(CallsTest, ARevertedCallCanBeBroughtBack) {
  base().File("f", "old");
  Call("1");
  ASSERT_OK(fs().WriteFile("f", string(70000, 'n')));
  ASSERT_OK(fs().WriteFile("g", string(70000, 'g')));
  Call("2");
  ASSERT_OK(fs().WriteFile("h", "h"));
  const TreeView before = View();
  ExpectReverted("1");
  EXPECT_EQ(Names(""), (vector<string>{"f", "h"}));
  ExpectReverted("3");  // the revert
  EXPECT_EQ(Compare(before, View(), {.ctime = false, .mtime = false}), "");
  ASSERT_OK(fs().Rollback("call-3"));
  EXPECT_EQ(Compare(before, View(), {}), "");
  // Its content is still there for the call's own mark.
  ASSERT_OK(fs().Settle());
  ExpectReverted("1");
  EXPECT_EQ(Content("f"), "old");
  ASSERT_OK(fs().Rollback("call-1"));
  EXPECT_EQ(Content("f"), "old");
  EXPECT_EQ(Names(""), vector<string>{"f"});
}

TEST_P(CallsTest, ARevertedDirectoryMayHaveHadDeletedNames) {
  base().File("d/early", "early");
  base().File("d/f", "f");
  base().File("d/e/early", "early");
  ASSERT_OK(fs().Unlink("d/early"));
  ASSERT_OK(fs().Unlink("d/e/early"));
  Call("1");
  ASSERT_OK(fs().RemoveRecursively("d"));
  Call("2");
  ExpectReverted("1");
  EXPECT_EQ(Names("d"), (vector<string>{"e", "f"}));
  ExpectReverted("3");  // the revert
  EXPECT_EQ(Names(""), vector<string>{});
  ExpectReverted("4");
  EXPECT_EQ(Names("d"), (vector<string>{"e", "f"}));
  EXPECT_EQ(Names("d/e"), vector<string>{});
  // What is deleted or made there later is built on it.
  Call("6");
  ASSERT_OK(fs().WriteFile("d/e/later", "later"));
  ExpectBuiltOn("5", {"d/e", "d/e/later"});
}

TEST_P(CallsTest, WhatLaterCallsChangedIsBuiltOn) {
  base().File("base", "old");
  base().File("moved/x", "x");
  Call("1");
  ASSERT_OK(fs().WriteFile("base", "call"));
  ASSERT_OK(fs().WriteFile("made", "call"));
  ASSERT_OK(fs().Mkdir("dir", 0755));
  ASSERT_OK(fs().Rename("moved", "to", 0));
  Call("2");
  ASSERT_OK(fs().AppendFile("base", "more"));
  ASSERT_OK(fs().Rename("made", "renamed", 0));
  ASSERT_OK(fs().WriteFile("dir/in", "in"));
  ASSERT_OK(fs().WriteFile("to/x", "later"));
  ExpectBuiltOn("1", {"base", "dir", "dir/in", "made", "renamed", "to/x"});
  // The other one stands alone.
  ExpectReverted("2");
  ExpectReverted("1");
  EXPECT_EQ(Names(""), (vector<string>{"base", "moved"}));
}

TEST_P(CallsTest, AFileThatIsRenamedOrLinkedLaterIsBuiltOn) {
  base().File("a", "a");
  base().File("b", "b");
  Call("1");
  ASSERT_OK(fs().AppendFile("a", "1"));
  ASSERT_OK(fs().AppendFile("b", "1"));
  Call("2");
  ASSERT_OK(fs().Rename("a", "c", 0));
  ASSERT_OK(fs().Link("b", "d"));
  ExpectBuiltOn("1", {"b", "c"});
}

TEST_P(CallsTest, WhatIsAsTheCallLeftItAgainIsNot) {
  base().File("a", "a");
  Call("1");
  ASSERT_OK(fs().Mkdir("dir", 0755));
  ASSERT_OK(fs().WriteFile("a", "1"));
  Call("2");
  ASSERT_OK(fs().WriteFile("dir/in", "in"));
  ASSERT_OK(fs().Unlink("dir/in"));
  ExpectReverted("1");
  EXPECT_EQ(Names(""), vector<string>{"a"});
  EXPECT_EQ(Content("a"), "a");
}

TEST_P(CallsTest, ADirectoryOfTheBaseMayMoveMeanwhile) {
  base().File("d/f", "old");
  Call("1");
  ASSERT_OK(fs().WriteFile("d/f", "call"));
  ASSERT_OK(fs().WriteFile("d/g", "call"));
  Call("2");
  ASSERT_OK(fs().Rename("d", "e", 0));
  ExpectReverted("1");
  EXPECT_EQ(Names("e"), vector<string>{"f"});
  EXPECT_EQ(Content("e/f"), "old");
}

TEST_P(CallsTest, ANameInADirectoryThatIsDeletedLaterIsBuiltOn) {
  base().File("d/f", "old");
  Call("1");
  ASSERT_OK(fs().Unlink("d/f"));
  Call("2");
  ASSERT_OK(fs().Rmdir("d"));
  ExpectBuiltOn("1", {"d/f"});
}

TEST_P(CallsTest, ADeletedTreeComesBack) {
  base().File("d/e/f", "f");
  base().File("d/g", string(50000, 'g'));
  ASSERT_OK(fs().Mkdir("d/new", 0750));
  ASSERT_OK(fs().WriteFile("d/new/h", string(50000, 'h')));
  const TreeView before = View();
  Call("1");
  ASSERT_OK(fs().RemoveRecursively("d"));
  ASSERT_OK(fs().WriteFile("d", "a file"));
  Call("2");
  ASSERT_OK(fs().WriteFile("later", "later"));
  ExpectReverted("1");
  ASSERT_OK(fs().Unlink("later"));
  EXPECT_EQ(Compare(before, View(), {.ctime = false, .mtime = false}), "");
}

TEST_P(CallsTest, OpenFilesGoOn) {
  base().File("f", "old");
  const Handle old = Open("f", O_RDWR);
  Call("1");
  ASSERT_OK(fs().WriteFile("f", "new content"));
  const Handle made = fs().Open("made", O_RDWR | O_CREAT, 0644).value();
  ASSERT_OK(fs().WriteAt(made, 0, string(50000, 'm')));
  Call("2");
  ExpectReverted("1");
  EXPECT_EQ(fs().ReadAt(old, 0, 100).value_or("?"), "old");
  EXPECT_EQ(fs().StatOf(made)->st_nlink, 0u);
  EXPECT_EQ(fs().ReadAt(made, 0, 50000).value_or("?"), string(50000, 'm'));
  ASSERT_OK(fs().Close(old));
  ASSERT_OK(fs().Close(made));
}

TEST_P(CallsTest, AttributesAndLinksComeBack) {
  base().File("f", "f");
  ASSERT_OK(fs().WriteFile("g", "g"));
  ASSERT_OK(fs().Link("g", "h"));
  ASSERT_OK(fs().SetXattr("f", "user.a", "1", 0));
  ASSERT_OK(fs().Symlink("f", "s"));
  const TreeView before = View();
  Call("1");
  ASSERT_OK(fs().Chmod("f", 0600));
  ASSERT_OK(fs().SetXattr("f", "user.a", "2", 0));
  ASSERT_OK(fs().SetXattr("f", "user.b", "2", 0));
  ASSERT_OK(fs().Unlink("h"));
  ASSERT_OK(fs().Link("f", "i"));
  ASSERT_OK(fs().Unlink("s"));
  ASSERT_OK(fs().Symlink("g", "s"));
  Call("2");
  ExpectReverted("1");
  EXPECT_EQ(Compare(before, View(), {.ctime = false, .mtime = false}), "");
}

TEST_P(CallsTest, OnlyChangesBeforeTheEndAreThoseOfTheCall) {
  Call("1");
  ASSERT_OK(fs().WriteFile("a", "a"));
  End("1");
  ASSERT_OK(fs().WriteFile("b", "b"));
  ExpectReverted("1");
  EXPECT_EQ(Names(""), vector<string>{"b"});
}

TEST_P(CallsTest, ARevertSurvivesARemount) {
  base().File("f", "old");
  Call("1");
  ASSERT_OK(fs().WriteFile("f", string(50000, '1')));
  Call("2");
  ASSERT_OK(fs().WriteFile("g", string(50000, '2')));
  ASSERT_OK(fs().Remount());
  ExpectReverted("2");
  ASSERT_OK(fs().Remount());
  EXPECT_EQ(Names(""), vector<string>{"f"});
  ASSERT_OK(fs().Rollback("call-3"));
  EXPECT_EQ(Content("g"), string(50000, '2'));
  ASSERT_OK(fs().Remount());
  ExpectReverted("1");
  EXPECT_EQ(Content("f"), "old");
  EXPECT_EQ(Content("g"), string(50000, '2'));
}

}  // namespace
}  // namespace txfs::testing

#include "cli/diff/merge.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/lines.h"

namespace txfs::cli {
namespace {

using ::std::string;

MergedText Merged(const string& ancestor, const string& ours,
                  const string& theirs) {
  const auto merged = MergeTexts(
      {.path = "f", .ancestor = ancestor, .ours = ours, .theirs = theirs});
  EXPECT_TRUE(merged.has_value() && merged->has_value());
  return merged && *merged ? **merged : MergedText{};
}

TEST(MergeTest, TakesWhatEitherSideChanged) {
  const MergedText merged =
      Merged(kLines, With(kLines, "1\n", "one\n"), kLines + "10\n");
  EXPECT_TRUE(merged.clean);
  EXPECT_EQ(merged.content, With(kLines, "1\n", "one\n") + "10\n");
}

TEST(MergeTest, TakesWhatBothDidOnce) {
  const string both = With(kLines, "5\n", "five\n");
  const MergedText merged = Merged(kLines, both, both);
  EXPECT_TRUE(merged.clean);
  EXPECT_EQ(merged.content, both);
}

TEST(MergeTest, MarksWhatBothChangedDifferently) {
  const MergedText merged = Merged(kLines, With(kLines, "1\n", "eins\n"),
                                   With(kLines, "1\n", "uno\n"));
  EXPECT_FALSE(merged.clean);
  EXPECT_EQ(merged.content,
            "<<<<<<< transaction\neins\n=======\nuno\n>>>>>>> workspace\n" +
                kLines.substr(2));
}

TEST(MergeTest, MergesWhatHasNoLineBreakAtItsEndAndWhatIsEmpty) {
  EXPECT_EQ(Merged("a\nb", "a\nb", "a\nc").content, "a\nc");
  EXPECT_EQ(Merged("a\n", "", "a\n").content, "");
  EXPECT_EQ(Merged("", "ours\n", "").content, "ours\n");
  EXPECT_FALSE(Merged("a\n", "", "b\n").clean);
}

TEST(MergeTest, KeepsBytesThatAreNoUtf8AndCarriageReturns) {
  const MergedText merged =
      Merged("\xFF\r\n2\n3\n4\n", "\xFE\r\n2\n3\n4\n", "\xFF\r\n2\n3\n5\n");
  EXPECT_TRUE(merged.clean);
  EXPECT_EQ(merged.content, "\xFE\r\n2\n3\n5\n");
}

TEST(MergeTest, LeavesAloneWhatIsNoText) {
  const string binary("a\0b", 3);
  for (const MergeInput& input :
       {MergeInput{"f", binary, "a", "b"}, MergeInput{"f", "a", binary, "b"},
        MergeInput{"f", "a", "b", binary}}) {
    const auto merged = MergeTexts(input);
    ASSERT_TRUE(merged.has_value());
    EXPECT_FALSE(merged->has_value());
  }
}

}  // namespace
}  // namespace txfs::cli

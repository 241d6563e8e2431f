#include <gtest/gtest.h>

#include <cerrno>

#include "journal/change.h"
#include "journal/intake.h"
#include "tests/format_page.h"
#include "tests/journal/fixture.h"

namespace txfs {
namespace {

/// The example of docs/format.md.
Change ExampleChange() {
  Change change;
  change.op = Op::kMkdir;
  change.time = {1'700'000'000, 5};
  change.pid = 42;
  change.uid = 1000;
  change.exe = "/bin/sh";
  change.path = "a/b";
  change.edits.emplace_back(
      DentryEdit{Ino{1}, "b", {}, {DentryKind::kInode, Ino{7}}});
  return change;
}

TEST(FormatTest, TheExampleChangeIsWhatThePageSays) {
  Bytes bytes;
  EncodeChange(ExampleChange(), bytes);
  EXPECT_EQ(Hex(ExampleBytes("change")), Hex(bytes));
}

/// The example of docs/format.md: refused because of what is below.
Change ExampleDenial() {
  Change change;
  change.op = Op::kRename;
  change.result = EPERM;
  change.time = {1'700'000'000, 5};
  change.pid = 42;
  change.uid = 1000;
  change.exe = "/bin/mv";
  change.path = "a";
  change.new_path = "b";
  change.policy = 7;
  change.rule = "hooks";
  change.reason = "why";
  change.suggest = "ask";
  change.because = "a/.git/hooks";
  return change;
}

TEST(FormatTest, TheExampleOfWhatIsBelowIsWhatThePageSays) {
  Bytes bytes;
  EncodeChange(ExampleDenial(), bytes);
  EXPECT_EQ(Hex(ExampleBytes("change because of another path")), Hex(bytes));
  const auto decoded = DecodeChange(bytes);
  ASSERT_OK(decoded);
  EXPECT_EQ(*decoded, ExampleDenial());
}

TEST(FormatTest, TheExampleIntakeIsWhatThePageSays) {
  const TempDir dir;
  const UniqueFd fd = dir.Open();
  auto intake = Intake::Create(fd.get(), Intake::kMinCapacity, Io::System());
  ASSERT_OK(intake);
  (*intake)->BeginEpoch({0x1122334455667788, 0, Lsn{3}});
  Bytes change;
  EncodeChange(ExampleChange(), change);
  ASSERT_OK((*intake)->Append(
      change, ContentRef{2, 5, 4096, 0x0807060504030201, 0}, AsBytes("hello")));

  const auto file = ReadWholeFile(AT_FDCWD, dir.path() + "/intake");
  ASSERT_OK(file);
  const ByteSpan bytes = AsBytes(*file);
  EXPECT_EQ(Hex(ExampleBytes("intake header")), Hex(bytes.first(32)));
  EXPECT_EQ(Hex(ExampleBytes("intake record")), Hex(bytes.subspan(4096, 48)));
  EXPECT_EQ(Hex(bytes.subspan(4096 + 48, change.size())), Hex(change));
}

}  // namespace
}  // namespace txfs

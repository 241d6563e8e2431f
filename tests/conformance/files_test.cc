#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <string>

#include "tests/conformance/conformance.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

class FilesTest : public ConformanceTest {};
FOR_EVERY_DRIVER(FilesTest);

TEST_P(FilesTest, ReadsAFileOfTheBase) {
  base().File("a/b", "hello");
  EXPECT_EQ(Content("a/b"), "hello");
  EXPECT_EQ(St("a/b").st_size, 5);
  EXPECT_EQ(Names(""), vector<string>{"a"});
}

TEST_P(FilesTest, ReadsWhatWasWrittenToANewFile) {
  ASSERT_OK(fs().WriteFile("new", "content"));
  EXPECT_EQ(Content("new"), "content");
  EXPECT_EQ(St("new").st_mode, S_IFREG | 0644u);
  EXPECT_EQ(St("new").st_nlink, 1u);
}

TEST_P(FilesTest, KeepsTheBaseWhenAFileOfItIsOverwritten) {
  base().File("f", "old content");
  ASSERT_OK(fs().WriteFile("f", "new"));
  EXPECT_EQ(Content("f"), "new");
  if (fs().has_base()) {
    EXPECT_EQ(base().Read("f"), "old content");
  }
}

TEST_P(FilesTest, PatchesTheMiddleOfABaseFile) {
  base().File("f", "0123456789");
  ASSERT_OK(fs().PatchFile("f", 3, "abc"));
  EXPECT_EQ(Content("f"), "012abc6789");
}

TEST_P(FilesTest, WritesPastTheEndLeaveZerosBetween) {
  base().File("f", "base");
  ASSERT_OK(fs().PatchFile("f", 10000, "end"));
  EXPECT_EQ(St("f").st_size, 10003);
  EXPECT_EQ(Content("f"), "base" + string(9996, '\0') + "end");
}

TEST_P(FilesTest, LaterWritesWinWhereTheyOverlap) {
  base().File("f", string(20000, '.'));
  string model(20000, '.');
  const struct {
    size_t offset, length;
    char fill;
  } writes[] = {{0, 100, 'a'},   {50, 100, 'b'}, {4000, 9000, 'c'},
                {4090, 10, 'd'}, {3999, 2, 'e'}, {12990, 20, 'f'},
                {0, 20000, 'g'}, {7, 1, 'h'},    {19999, 300, 'i'},
                {20100, 1, 'j'}};
  for (const auto& write : writes) {
    ASSERT_OK(
        fs().PatchFile("f", write.offset, string(write.length, write.fill)));
    if (model.size() < write.offset + write.length)
      model.resize(write.offset + write.length);
    model.replace(write.offset, write.length, string(write.length, write.fill));
    ASSERT_EQ(Content("f"), model);
  }
}

TEST_P(FilesTest, TakesWritesLargerThanAnyRecord) {
  string large(5 << 20, '\0');
  for (size_t i = 0; i < large.size(); ++i)
    large[i] = static_cast<char>(i * 2654435761U >> 13);
  ASSERT_OK(fs().WriteFile("large", large));
  EXPECT_TRUE(Content("large") == large);
  ASSERT_OK(fs().PatchFile("large", (1 << 20) - 5, "straddles"));
  large.replace((1 << 20) - 5, 9, "straddles");
  EXPECT_TRUE(Content("large") == large);
}

TEST_P(FilesTest, EmptyWritesChangeNothing) {
  base().File("f", "abc");
  const Handle file = Open("f", O_RDWR);
  const auto written = fs().WriteAt(file, 100, "");
  ASSERT_OK(written);
  EXPECT_EQ(*written, 0u);
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), "abc");
}

TEST_P(FilesTest, ReadsStopAtTheEndOfTheFile) {
  base().File("f", "abc");
  const Handle file = Open("f", O_RDONLY);
  EXPECT_EQ(fs().ReadAt(file, 1, 100).value_or("?"), "bc");
  EXPECT_EQ(fs().ReadAt(file, 3, 100).value_or("?"), "");
  EXPECT_EQ(fs().ReadAt(file, 1000, 100).value_or("?"), "");
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, AppendsAtTheEndWhoeverMovedIt) {
  base().File("f", "one");
  const Handle first = Open("f", O_WRONLY | O_APPEND),
               second = Open("f", O_WRONLY | O_APPEND);
  ASSERT_OK(fs().WriteAt(first, 0, " two"));
  ASSERT_OK(fs().WriteAt(second, 0, " three"));
  ASSERT_OK(fs().WriteAt(first, 0, " four"));
  ASSERT_OK(fs().Close(first));
  ASSERT_OK(fs().Close(second));
  EXPECT_EQ(Content("f"), "one two three four");
}

TEST_P(FilesTest, OpeningWithTruncationEmptiesABaseFile) {
  base().File("f", "content");
  const Handle file = Open("f", O_WRONLY | O_TRUNC);
  EXPECT_EQ(St("f").st_size, 0);
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), "");
}

TEST_P(FilesTest, ExclusiveCreationFailsWhereSomethingIs) {
  base().File("f", "");
  base().Symlink("nowhere", "dangling");
  EXPECT_ERRNO(fs().Open("f", O_CREAT | O_EXCL | O_WRONLY, 0644), EEXIST);
  EXPECT_ERRNO(fs().Open("dangling", O_CREAT | O_EXCL | O_WRONLY, 0644),
               EEXIST);
}

TEST_P(FilesTest, BytesCutOffByATruncationNeverComeBack) {
  base().File("f", "secret base bytes");
  ASSERT_OK(fs().Truncate("f", 3));
  ASSERT_OK(fs().Truncate("f", 10));
  EXPECT_EQ(Content("f"), "sec" + string(7, '\0'));
  ASSERT_OK(fs().PatchFile("f", 12, "x"));
  EXPECT_EQ(Content("f"), "sec" + string(9, '\0') + "x");
}

TEST_P(FilesTest, OverwrittenBytesCutOffByATruncationNeverComeBack) {
  ASSERT_OK(fs().WriteFile("f", string(9000, 'x')));
  ASSERT_OK(fs().Truncate("f", 5000));
  ASSERT_OK(fs().Truncate("f", 9000));
  EXPECT_EQ(Content("f"), string(5000, 'x') + string(4000, '\0'));
  ASSERT_OK(fs().Truncate("f", 0));
  ASSERT_OK(fs().Truncate("f", 1));
  EXPECT_EQ(Content("f"), string(1, '\0'));
}

TEST_P(FilesTest, TruncationToTheSameSizeKeepsTheContent) {
  base().File("f", "same");
  ASSERT_OK(fs().Truncate("f", 4));
  EXPECT_EQ(Content("f"), "same");
}

TEST_P(FilesTest, TruncationOfWhatIsNoRegularFileFails) {
  base().Directory("d");
  base().Fifo("p");
  EXPECT_ERRNO(fs().Truncate("d", 0), EISDIR);
  EXPECT_ERRNO(fs().Truncate("p", 0), EINVAL);
  EXPECT_ERRNO(fs().Truncate("absent", 0), ENOENT);
}

TEST_P(FilesTest, AnUnlinkedOpenFileLivesOn) {
  base().File("f", "base content");
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().Unlink("f"));
  EXPECT_ERRNO(fs().Stat("f"), ENOENT);
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "base content");
  ASSERT_OK(fs().WriteAt(file, 5, "CONTENT and more"));
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "base CONTENT and more");
  const auto st = fs().StatOf(file);
  ASSERT_OK(st);
  EXPECT_EQ(st->st_nlink, 0u);
  EXPECT_EQ(st->st_size, 21);
  ASSERT_OK(fs().TruncateOf(file, 2));
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "ba");
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, AnUnlinkedNewFileLivesOnWhileItsNameIsTakenAgain) {
  const Handle file = Open("f", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(file, 0, "first"));
  ASSERT_OK(fs().Unlink("f"));
  ASSERT_OK(fs().WriteFile("f", "second"));
  ASSERT_OK(fs().WriteAt(file, 5, " still"));
  EXPECT_EQ(fs().ReadAt(file, 0, 100).value_or("?"), "first still");
  EXPECT_EQ(Content("f"), "second");
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), "second");
}

TEST_P(FilesTest, AFileReplacedByRenameLivesOnWhileOpen) {
  base().File("old", "old");
  base().File("new", "new");
  const Handle file = Open("old", O_RDWR);
  ASSERT_OK(fs().Rename("new", "old", 0));
  EXPECT_EQ(fs().ReadAt(file, 0, 10).value_or("?"), "old");
  const auto st = fs().StatOf(file);
  ASSERT_OK(st);
  EXPECT_EQ(st->st_nlink, 0u);
  ASSERT_OK(fs().WriteAt(file, 0, "gone"));
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("old"), "new");
}

TEST_P(FilesTest, SparseFilesReadAsZerosAndKnowTheirHoles) {
  const Handle file = Open("sparse", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(file, 1 << 20, "data"));
  EXPECT_EQ(fs().ReadAt(file, 4096, 8).value_or("?"), string(8, '\0'));
  const auto data = fs().Seek(file, 0, SEEK_DATA);
  ASSERT_OK(data);
  EXPECT_EQ(*data, 1u << 20);
  const auto hole = fs().Seek(file, 1 << 20, SEEK_HOLE);
  ASSERT_OK(hole);
  EXPECT_GE(*hole, (1u << 20) + 4);
  EXPECT_EQ(fs().Seek(file, 0, SEEK_HOLE).value_or(99), 0u);
  EXPECT_ERRNO(fs().Seek(file, 1 << 21, SEEK_DATA), ENXIO);
  EXPECT_ERRNO(fs().Seek(file, 1 << 21, SEEK_HOLE), ENXIO);
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, SeeksHolesOfABaseFileUnderNewData) {
  base().SparseFile("sparse", 1 << 20);
  const Handle file = Open("sparse", O_RDWR);
  EXPECT_ERRNO(fs().Seek(file, 0, SEEK_DATA), ENXIO);
  ASSERT_OK(fs().WriteAt(file, 65536, string(4096, 'x')));
  EXPECT_EQ(fs().Seek(file, 0, SEEK_DATA).value_or(0), 65536u);
  EXPECT_EQ(fs().Seek(file, 65536, SEEK_HOLE).value_or(0), 69632u);
  EXPECT_ERRNO(fs().Seek(file, 69632, SEEK_DATA), ENXIO);
  ASSERT_OK(fs().Close(file));
}

/// A block is data as soon as one byte of it was written, as on a disk.
TEST_P(FilesTest, SeeksKnowWholeBlocks) {
  constexpr int64_t kB = 4096;
  const auto data = [&](Handle file, uint64_t from) {
    const auto at = fs().Seek(file, from, SEEK_DATA);
    return at ? static_cast<int64_t>(*at) : -1;
  };
  const auto hole = [&](Handle file, uint64_t from) {
    const auto at = fs().Seek(file, from, SEEK_HOLE);
    return at ? static_cast<int64_t>(*at) : -1;
  };
  const Handle file = Open("new", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(file, 100, "x"));
  ASSERT_OK(fs().WriteAt(file, 3 * kB - 1, "two blocks"));
  ASSERT_OK(fs().Allocate(file, 0, 6 * kB, 2 * kB + 500));
  ASSERT_OK(fs().WriteAt(file, 7 * kB + 10, "y"));
  EXPECT_EQ(data(file, 0), 0);
  EXPECT_EQ(data(file, 50), 50);
  EXPECT_EQ(data(file, 4000), 4000);
  EXPECT_EQ(hole(file, 0), 1 * kB);
  EXPECT_EQ(hole(file, 4095), 1 * kB);
  EXPECT_EQ(hole(file, kB), 1 * kB);
  EXPECT_EQ(hole(file, kB + 5), 1 * kB + 5);
  EXPECT_EQ(data(file, kB), 2 * kB);
  EXPECT_EQ(hole(file, 2 * kB), 4 * kB);
  // An allocated range is a hole where nothing was written.
  EXPECT_EQ(hole(file, 6 * kB), 6 * kB);
  EXPECT_EQ(data(file, 5 * kB), 7 * kB);
  EXPECT_EQ(hole(file, 7 * kB + 100), 8 * kB);
  // Just below the end.
  EXPECT_EQ(data(file, 8 * kB), -1);
  EXPECT_EQ(data(file, 8 * kB + 499), -1);
  EXPECT_EQ(hole(file, 8 * kB + 499), 8 * kB + 499);
  ASSERT_OK(fs().WriteAt(file, 8 * kB, "z"));
  EXPECT_EQ(data(file, 8 * kB + 499), 8 * kB + 499);
  EXPECT_EQ(hole(file, 7 * kB), 8 * kB + 500);
  EXPECT_EQ(hole(file, 8 * kB + 499), 8 * kB + 500);
  EXPECT_EQ(data(file, 8 * kB + 500), -1);
  // A block of which some bytes were punched has the others.
  ASSERT_OK(fs().WriteAt(file, 0, string(8 * kB, 'd')));
  ASSERT_OK(fs().Allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          kB + 1, 3 * kB));
  EXPECT_EQ(hole(file, 0), 2 * kB);
  EXPECT_EQ(data(file, 2 * kB), 4 * kB);
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, SeeksKnowWholeBlocksOfABaseFile) {
  constexpr uint64_t kB = 4096;
  base().File("f", string(2 * kB + 100, 'b'));
  const Handle file = Open("f", O_RDWR);
  EXPECT_EQ(fs().Seek(file, 0, SEEK_HOLE).value_or(0), 2 * kB + 100);
  ASSERT_OK(fs().Truncate("f", 10));
  ASSERT_OK(fs().Truncate("f", 4 * kB));
  EXPECT_EQ(fs().Seek(file, 0, SEEK_HOLE).value_or(0), kB);
  EXPECT_EQ(fs().Seek(file, 50, SEEK_DATA).value_or(0), 50U);
  EXPECT_ERRNO(fs().Seek(file, kB, SEEK_DATA), ENXIO);
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, AllocationGrowsTheFileUnlessToldNotTo) {
  base().File("f", "abc");
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().Allocate(file, FALLOC_FL_KEEP_SIZE, 0, 10000));
  EXPECT_EQ(St("f").st_size, 3);
  ASSERT_OK(fs().Allocate(file, 0, 0, 10000));
  EXPECT_EQ(St("f").st_size, 10000);
  ASSERT_OK(fs().Allocate(file, 0, 0, 5));
  EXPECT_EQ(St("f").st_size, 10000);
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), "abc" + string(9997, '\0'));
}

TEST_P(FilesTest, AllocatedRangesHaveBlocks) {
  constexpr uint64_t kAllocated = 1 << 20;
  base().File("old", string(10000, 'o'));
  const auto bytes = [&](const char* name) {
    return static_cast<uint64_t>(St(name).st_blocks) * 512;
  };
  for (const char* name : {"new", "old"}) {
    SCOPED_TRACE(name);
    const Handle file = Open(name, O_RDWR | O_CREAT);
    ASSERT_OK(fs().Allocate(file, 0, 0, kAllocated));
    EXPECT_GE(bytes(name), kAllocated);
    ASSERT_OK(fs().Allocate(file, FALLOC_FL_KEEP_SIZE, kAllocated, kAllocated));
    EXPECT_EQ(St(name).st_size, static_cast<off_t>(kAllocated));
    EXPECT_GE(bytes(name), 2 * kAllocated);
    ASSERT_OK(fs().WriteAt(file, 500'000, string(100'000, 'x')));
    ASSERT_OK(fs().WriteAt(file, 300'000, string(100'000, 'y')));
    EXPECT_GE(bytes(name), 2 * kAllocated - 8192);
    EXPECT_LE(bytes(name), 2 * kAllocated + 8192);
    ASSERT_OK(fs().Allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                            kAllocated / 2));
    EXPECT_LE(bytes(name), kAllocated * 3 / 2 + 16384);
    // Also where there was something before.
    ASSERT_OK(fs().Allocate(file, 0, 0, kAllocated));
    EXPECT_GE(bytes(name), 2 * kAllocated - 8192);
    ASSERT_OK(fs().WriteAt(file, 0, "start"));
    EXPECT_EQ(fs().ReadAt(file, 0, 7).value_or("?"), string("start\0\0", 7));
    EXPECT_EQ(fs().ReadAt(file, kAllocated / 2, 2).value_or("?"), "xx");
    ASSERT_OK(fs().Truncate(name, 4096));
    EXPECT_LE(bytes(name), 8192U);
    ASSERT_OK(fs().Close(file));
  }
}

TEST_P(FilesTest, PunchedHolesReadAsZeros) {
  base().File("f", string(10000, 'x'));
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().Allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 100,
                          5000));
  ASSERT_OK(fs().Allocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                          9999, 5000));
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), string(100, 'x') + string(5000, '\0') +
                              string(4899, 'x') + string(1, '\0'));
}

TEST_P(FilesTest, ZeroedRangesReadAsZerosAndMayGrowTheFile) {
  base().File("f", string(10000, 'x'));
  const Handle file = Open("f", O_RDWR);
  ASSERT_OK(fs().Allocate(file, FALLOC_FL_ZERO_RANGE, 9000, 2000));
  EXPECT_EQ(St("f").st_size, 11000);
  ASSERT_OK(
      fs().Allocate(file, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, 1));
  EXPECT_EQ(St("f").st_size, 11000);
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"),
            string(1, '\0') + string(8999, 'x') + string(2000, '\0'));
}

TEST_P(FilesTest, AllocationOfNothingFails) {
  base().File("f", "x");
  const Handle file = Open("f", O_RDWR);
  EXPECT_ERRNO(fs().Allocate(file, 0, 0, 0), EINVAL);
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, CopiesRangesBetweenFiles) {
  base().File("from", "0123456789");
  base().File("to", "abcdefghij");
  const Handle from = Open("from", O_RDONLY), to = Open("to", O_RDWR);
  EXPECT_EQ(fs().CopyRange(from, 2, to, 5, 3).value_or(0), 3u);
  EXPECT_EQ(fs().CopyRange(from, 8, to, 9, 100).value_or(0), 2u);
  EXPECT_EQ(fs().CopyRange(from, 10, to, 0, 100).value_or(99), 0u);
  ASSERT_OK(fs().Close(from));
  ASSERT_OK(fs().Close(to));
  EXPECT_EQ(Content("to"), "abcde234i89");
}

TEST_P(FilesTest, CopiesWithinOneFileUnlessTheRangesOverlap) {
  ASSERT_OK(fs().WriteFile("f", "0123456789"));
  const Handle file = Open("f", O_RDWR);
  EXPECT_EQ(fs().CopyRange(file, 0, file, 5, 5).value_or(0), 5u);
  EXPECT_ERRNO(fs().CopyRange(file, 0, file, 2, 5), EINVAL);
  ASSERT_OK(fs().Close(file));
  EXPECT_EQ(Content("f"), "0123401234");
}

TEST_P(FilesTest, SyncAcknowledgesWhatWasWritten) {
  const Handle file = Open("f", O_RDWR | O_CREAT);
  ASSERT_OK(fs().WriteAt(file, 0, "durable"));
  EXPECT_OK(fs().Sync(file));
  ASSERT_OK(fs().Close(file));
}

TEST_P(FilesTest, StatfsShowsAFilesystemWithSpaceAndLongNames) {
  const auto st = fs().StatFs();
  ASSERT_OK(st);
  EXPECT_GT(st->f_blocks, 0u);
  EXPECT_GT(st->f_bavail, 0u);
  EXPECT_EQ(st->f_namemax, 255u);
}

TEST_P(FilesTest, OpeningADirectoryForWritingFails) {
  base().Directory("d");
  EXPECT_ERRNO(fs().Open("d", O_WRONLY, 0), EISDIR);
  EXPECT_ERRNO(fs().Open("d", O_RDWR, 0), EISDIR);
}

TEST_P(FilesTest, WritesThroughASymlinkReachItsTarget) {
  base().File("d/target", "old");
  base().Symlink("d/target", "link");
  ASSERT_OK(fs().WriteFile("link", "new"));
  EXPECT_EQ(Content("d/target"), "new");
  EXPECT_TRUE(S_ISLNK(St("link").st_mode));
}

}  // namespace
}  // namespace txfs::testing

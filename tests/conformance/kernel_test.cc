#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/async_write.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/mapping.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;

/// What only the kernel does in front of a filesystem.
class KernelTest : public ConformanceTest {
 protected:
  UniqueFd OpenFd(const string& path, int flags) {
    UniqueFd fd(open((fs().mountpoint() + "/" + path).c_str(),
                     flags | O_CLOEXEC, 0644));
    EXPECT_TRUE(fd.valid()) << path << ": " << std::strerror(errno);
    return fd;
  }
};
FOR_DRIVERS(KernelTest, Needs::kKernel);

TEST_P(KernelTest, StoresThroughASharedMappingReachTheFile) {
  base().File("f", string(10000, 'x'));
  fs();
  {
    const UniqueFd fd = OpenFd("f", O_RDWR);
    Mapping map(fd.get(), 10000, MAP_SHARED);
    ASSERT_TRUE(map.valid());
    EXPECT_EQ(map.data()[5000], 'x');
    std::memcpy(map.data() + 4090, "across pages", 12);
    EXPECT_TRUE(map.Sync());
  }
  EXPECT_EQ(Content("f"),
            string(4090, 'x') + "across pages" + string(5898, 'x'));
}

TEST_P(KernelTest, StoresThroughAMappingReachTheFileWithoutSync) {
  fs();
  {
    const UniqueFd fd = OpenFd("f", O_RDWR | O_CREAT);
    ASSERT_EQ(ftruncate(fd.get(), 100000), 0);
    Mapping map(fd.get(), 100000, MAP_SHARED);
    ASSERT_TRUE(map.valid());
    for (size_t i = 0; i < 100000; i += 4096) map.data()[i] = 'm';
  }
  ASSERT_OK(fs().Remount());
  const string content = Content("f");
  ASSERT_EQ(content.size(), 100000u);
  for (size_t i = 0; i < 100000; i += 4096) EXPECT_EQ(content[i], 'm') << i;
}

TEST_P(KernelTest, SeeksFindStoresThroughAMapping) {
  constexpr off_t kAll = 1 << 20;
  constexpr off_t kOnePage = 4096;
  fs();
  const UniqueFd fd = OpenFd("f", O_RDWR | O_CREAT);
  ASSERT_EQ(ftruncate(fd.get(), kAll), 0);
  Mapping map(fd.get(), kAll, MAP_SHARED);
  ASSERT_TRUE(map.valid());
  map.data()[100 * kOnePage + 7] = 'm';
  EXPECT_EQ(lseek(fd.get(), 0, SEEK_DATA), 100 * kOnePage);
  EXPECT_EQ(lseek(fd.get(), 100 * kOnePage, SEEK_HOLE), 101 * kOnePage);
  map.data()[101 * kOnePage] = 'm';
  map.data()[103 * kOnePage] = 'm';
  EXPECT_EQ(lseek(fd.get(), 100 * kOnePage, SEEK_HOLE), 102 * kOnePage);
  EXPECT_EQ(lseek(fd.get(), 102 * kOnePage, SEEK_DATA), 103 * kOnePage);
  map.data()[kAll - 1] = 'm';
  EXPECT_EQ(lseek(fd.get(), kAll - 3, SEEK_DATA), kAll - 3);
  EXPECT_EQ(lseek(fd.get(), kAll - 3, SEEK_HOLE), kAll);
}

TEST_P(KernelTest, PrivateMappingsSeeWrites) {
  base().File("f", "base");
  fs();
  const UniqueFd fd = OpenFd("f", O_RDWR);
  Mapping map(fd.get(), 4, MAP_PRIVATE);
  ASSERT_TRUE(map.valid());
  ASSERT_EQ(pwrite(fd.get(), "UPPE", 4, 0), 4);
  EXPECT_EQ(string(map.data(), 4), "UPPE");
}

TEST_P(KernelTest, PathsLongerThanPathMaxWork) {
  base().Directory("d");
  fs();
  const string name(200, 'n');
  UniqueFd dir = OpenFd("d", O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 40; ++depth) {
    ASSERT_EQ(mkdirat(dir.get(), name.c_str(), 0755), 0) << depth;
    UniqueFd next(
        openat(dir.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(next.valid());
    dir = std::move(next);
  }
  const UniqueFd file(
      openat(dir.get(), "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_TRUE(file.valid());
  EXPECT_EQ(write(file.get(), "deep", 4), 4);
  struct stat st{};
  EXPECT_EQ(fstatat(dir.get(), "f", &st, 0), 0);
  EXPECT_EQ(st.st_size, 4);
  // The suite's own walk over the tree uses whole paths.
  EXPECT_EQ(renameat(AT_FDCWD, (fs().mountpoint() + "/d/" + name).c_str(),
                     AT_FDCWD, (fs().mountpoint() + "/d/short").c_str()),
            0);
  EXPECT_EQ(fstatat(dir.get(), "f", &st, 0), 0);
  const string shell = "rm -r '" + fs().mountpoint() + "/d/short'";
  EXPECT_EQ(std::system(shell.c_str()), 0);
}

TEST_P(KernelTest, BaseTreesDeeperThanPathMaxAreReadable) {
  SkipTreeChecks();
  const string name(200, 'n');
  base().Directory("d");
  UniqueFd dir(
      open((base().root() + "/d").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 40; ++depth) {
    ASSERT_EQ(mkdirat(dir.get(), name.c_str(), 0755), 0);
    dir.Reset(
        openat(dir.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  const UniqueFd base_file(
      openat(dir.get(), "f", O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(write(base_file.get(), "deep", 4), 4);
  UniqueFd at(
      open(fs().mountpoint().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  at.Reset(openat(at.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int depth = 0; depth < 40; ++depth) {
    at.Reset(
        openat(at.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(at.valid()) << depth;
  }
  const UniqueFd file(openat(at.get(), "f", O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  char content[5] = {};
  EXPECT_EQ(read(file.get(), content, 4), 4);
  EXPECT_STREQ(content, "deep");
  EXPECT_EQ(pwrite(file.get(), "D", 1, 0), 1);
}

TEST_P(KernelTest, AModeThatAWriteChangesIsNotCached) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  base().File("f", string(8192, 'x'), 06777);
  base().File("g", string(8192, 'x'), 06777);
  alignas(4096) static char block[4096];
  const auto cached_mode = [&](const string& path) {
    struct statx stx{};
    EXPECT_EQ(statx(AT_FDCWD, (fs().mountpoint() + "/" + path).c_str(), 0,
                    STATX_MODE, &stx),
              0);
    return stx.stx_mode & 07777;
  };
  fs();
  for (const auto& [name, flags] :
       {std::pair<string, int>{"f", 0}, {"g", O_DIRECT}}) {
    EXPECT_EQ(cached_mode(name), 06777) << name;
    const UniqueFd fd = OpenFd(name, O_WRONLY | flags);
    fs().ActAs(1000, 1000);
    const ssize_t n = pwrite(fd.get(), block, sizeof block, 0);
    fs().ActAs(0, 0);
    ASSERT_EQ(n, 4096) << name;
    EXPECT_EQ(cached_mode(name), 0777) << name;
  }
}

TEST_P(KernelTest, DirectReadsSeeBufferedWrites) {
  base().File("f", string(8192, 'x'));
  fs();
  const UniqueFd buffered = OpenFd("f", O_RDWR),
                 direct = OpenFd("f", O_RDONLY | O_DIRECT);
  ASSERT_EQ(pwrite(buffered.get(), "new", 3, 4096), 3);
  alignas(4096) static char block[4096];
  ASSERT_EQ(pread(direct.get(), block, sizeof block, 4096), 4096);
  EXPECT_EQ(string(block, 4), "newx");
}

TEST_P(KernelTest, BufferedReadsSeeDirectWrites) {
  base().File("f", string(8192, 'x'));
  EXPECT_EQ(Content("f").size(), 8192u);
  const UniqueFd direct = OpenFd("f", O_WRONLY | O_DIRECT);
  alignas(4096) static char block[4096];
  std::memset(block, 'd', sizeof block);
  ASSERT_EQ(pwrite(direct.get(), block, sizeof block, 0), 4096);
  EXPECT_EQ(Content("f"), string(4096, 'd') + string(4096, 'x'));
}

TEST_P(KernelTest, BufferedReadsSeeAsynchronousDirectWrites) {
  base().File("f", string(65536, 'x'));
  fs();
  const UniqueFd direct = OpenFd("f", O_WRONLY | O_DIRECT),
                 buffered = OpenFd("f", O_RDONLY);
  Mapping map(OpenFd("f", O_RDWR).get(), 65536, MAP_SHARED);
  ASSERT_TRUE(map.valid());
  std::atomic<bool> done = false;
  std::thread reader([&] {
    string all(65536, '?');
    while (!done) {
      EXPECT_EQ(pread(buffered.get(), all.data(), all.size(), 0), 65536);
    }
  });
  alignas(4096) static char block[4096];
  const int rounds = std::max(50, Scaled(500));
  for (int round = 0; round < rounds; ++round) {
    const char fresh = static_cast<char>('a' + round % 26);
    const off_t offset = off_t{round % 16} * 4096;
    std::memset(block, fresh, sizeof block);
    EXPECT_EQ(WriteAsynchronously(direct.get(), {block, 4096}, offset), 4096);
    char seen = '?';
    EXPECT_EQ(pread(buffered.get(), &seen, 1, offset + 4095), 1);
    EXPECT_EQ(seen, fresh) << round;
    EXPECT_EQ(map.data()[offset], fresh) << round;
  }
  done = true;
  reader.join();
}

TEST_P(KernelTest, ScatteredWritesArriveInOrder) {
  fs();
  const UniqueFd fd = OpenFd("f", O_RDWR | O_CREAT);
  string one = "one ", two(70000, 't'), three = " three";
  const iovec parts[] = {{one.data(), one.size()},
                         {two.data(), two.size()},
                         {three.data(), three.size()}};
  ASSERT_EQ(writev(fd.get(), parts, 3), static_cast<ssize_t>(70010));
  EXPECT_EQ(Content("f"), one + two + three);
}

TEST_P(KernelTest, ReadsBehindTheBackOfACachedPageAreFresh) {
  base().File("f", string(4096, 'x'));
  EXPECT_EQ(Content("f"), string(4096, 'x'));
  ASSERT_OK(fs().Truncate("f", 10));
  EXPECT_EQ(Content("f"), string(10, 'x'));
  ASSERT_OK(fs().Truncate("f", 20));
  EXPECT_EQ(Content("f"), string(10, 'x') + string(10, '\0'));
}

/// Linux 6.9 lets a filesystem refuse them.
bool MayRefuseHandles() {
  utsname name{};
  int version = 0;
  int level = 0;
  return uname(&name) == 0 &&
         std::sscanf(name.release, "%d.%d", &version, &level) == 2 &&
         std::pair(version, level) >= std::pair(6, 9);
}

TEST_P(KernelTest, FileHandlesWorkOrAreRefused) {
  base().File("f", "content");
  if (!MayRefuseHandles()) GTEST_SKIP() << "needs Linux 6.9";
  const UniqueFd root = OpenFd("", O_RDONLY | O_DIRECTORY);
  alignas(file_handle) std::array<char, sizeof(file_handle) + MAX_HANDLE_SZ>
      buffer{};
  auto* const handle = reinterpret_cast<file_handle*>(buffer.data());
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(root.get(), "f", handle, &mount, 0) != 0) {
    EXPECT_EQ(ErrnoName(errno), "EOPNOTSUPP");
    return;
  }
  // Drops the inodes that nobody uses.
  if (!(std::ofstream("/proc/sys/vm/drop_caches") << "2" << std::flush)) {
    GTEST_SKIP() << "only root can drop caches";
  }
  const UniqueFd fd(open_by_handle_at(root.get(), handle, O_RDONLY));
  ASSERT_TRUE(fd.valid()) << std::strerror(errno);
  string content(7, '\0');
  EXPECT_EQ(pread(fd.get(), content.data(), content.size(), 0), 7);
  EXPECT_EQ(content, "content");
}

TEST_P(KernelTest, NamelessTemporaryFilesAreRefusedOrWork) {
  fs();
  const int fd =
      open(fs().mountpoint().c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    EXPECT_EQ(ErrnoName(errno), "EOPNOTSUPP");
  } else {
    EXPECT_EQ(write(fd, "x", 1), 1);
    close(fd);
  }
}

TEST_P(KernelTest, CurrentDirectoriesFollowARename) {
  base().File("a/b/f", "x");
  fs();
  const UniqueFd dir = OpenFd("a/b", O_RDONLY | O_DIRECTORY);
  ASSERT_OK(fs().Rename("a", "z", 0));
  const UniqueFd file(openat(dir.get(), "f", O_RDONLY | O_CLOEXEC));
  EXPECT_TRUE(file.valid());
  const UniqueFd made(
      openat(dir.get(), "g", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  EXPECT_TRUE(made.valid());
  EXPECT_EQ(Names("z/b"), (std::vector<string>{"f", "g"}));
}

}  // namespace
}  // namespace txfs::testing

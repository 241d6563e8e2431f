#include <dirent.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fs/fuse/fuse_mount.h"
#include "fs/host/processes.h"
#include "tests/async_write.h"
#include "tests/conformance/mapping.h"
#include "tests/fuse/served_mount.h"

namespace txfs::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uid_t kNobody = 65534;

std::string ReadFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "open: " + std::string(std::strerror(errno));
  std::string content(1 << 20, '\0');
  const ssize_t n = ::read(fd.get(), content.data(), content.size());
  if (n < 0) return "read: " + std::string(std::strerror(errno));
  content.resize(static_cast<size_t>(n));
  return content;
}

bool WriteFile(const std::string& path, std::string_view content,
               int flags = O_CREAT) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | flags, 0644));
  return fd.valid() && ::write(fd.get(), content.data(), content.size()) ==
                           static_cast<ssize_t>(content.size());
}

std::set<std::string> List(const std::string& path) {
  std::set<std::string> names;
  DIR* stream = ::opendir(path.c_str());
  if (stream == nullptr) return names;
  while (const dirent* entry = ::readdir(stream)) {
    EXPECT_TRUE(names.insert(entry->d_name).second) << entry->d_name;
  }
  ::closedir(stream);
  return names;
}

bool Exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

mode_t ModeOf(const std::string& path) {
  struct stat st{};
  return ::stat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
}

/// Who is not root, for RunAs.
uid_t OrdinaryUser() { return ::geteuid() == 0 ? kNobody : ::geteuid(); }

/// Runs `body` in a process of `uid`; whether it returned true.
bool RunAs(uid_t uid, const std::function<bool()>& body) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    const bool is =
        uid == ::geteuid() || (::setgid(uid) == 0 && ::setuid(uid) == 0);
    ::_exit(is && body() ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

ServeOptions Files(std::function<void(MemoryFilesystem&)> prepare) {
  ServeOptions options;
  options.prepare = std::move(prepare);
  return options;
}

ServeOptions OneFile() {
  return Files([](MemoryFilesystem& fs) { fs.AddFile("file", "content"); });
}

/// Most of these need /dev/fuse, and fusermount3 where root is not at work;
/// where they are missing there is nothing to test.
class FuseMountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access("/dev/fuse", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "needs /dev/fuse";
    }
    if (::geteuid() != 0) NeedFusermount();
  }

  static void NeedFusermount() {
    if (::access("/usr/bin/fusermount3", X_OK) != 0) {
      GTEST_SKIP() << "needs fusermount3";
    }
  }

  void Mount(ServeOptions options = {}) {
    mount_.emplace(std::move(options));
    ASSERT_EQ(mount_->error(), std::nullopt);
  }
  ServedMount& mount() { return *mount_; }
  CallLog& log() { return mount_->log(); }
  uint64_t count(Call call) { return log().of(call); }

 private:
  std::optional<ServedMount> mount_;
};

TEST_F(FuseMountTest, WarmOpenReadCloseSendsNothing) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_EQ(ReadFile(mount().At("file")), "content");
  // Reading from the daemon made the kernel doubt the access time, once.
  ASSERT_EQ(ModeOf(mount().At("file")), 0644);
  const uint64_t before = log().total();
  EXPECT_EQ(ReadFile(mount().At("file")), "content");
  EXPECT_EQ(ModeOf(mount().At("file")), 0644);
  EXPECT_EQ(log().total(), before);
}

TEST_F(FuseMountTest, WarmListingSendsNothing) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_THAT(List(mount().path()), ElementsAre(".", "..", "file"));
  ASSERT_EQ(ModeOf(mount().path()), 0777);
  const uint64_t before = log().total();
  EXPECT_THAT(List(mount().path()), ElementsAre(".", "..", "file"));
  EXPECT_EQ(log().total(), before);
}

TEST_F(FuseMountTest, AbsentNamesAreRemembered) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  ASSERT_FALSE(Exists(mount().At("absent")));
  const uint64_t before = log().total();
  EXPECT_FALSE(Exists(mount().At("absent")));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(log().total(), before);
}

TEST_F(FuseMountTest, ListingLooksUpWhatItLists) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  List(mount().path());
  const uint64_t before = log().total();
  EXPECT_TRUE(Exists(mount().At("file")));
  EXPECT_EQ(log().total(), before);
}

TEST_F(FuseMountTest, LargeDirectoryIsListedOnce) {
  ASSERT_NO_FATAL_FAILURE(Mount(Files([](MemoryFilesystem& fs) {
    for (int i = 0; i < 3000; ++i) {
      fs.AddFile("a-rather-long-name-" + std::to_string(i), "");
    }
    fs.AddFile(std::string(255, 'x'), "");
  })));
  EXPECT_EQ(List(mount().path()).size(), 3003U);
}

constexpr size_t kMany = 1000;

/// Directories "a" and "b" with kMany files each.
ServeOptions LargeDirectories() {
  return Files([](MemoryFilesystem& fs) {
    const Caller caller{.uid = ::geteuid()};
    for (const char* name : {"a", "b"}) {
      const auto made = fs.MakeDirectory(caller, kRootIno, name, 0777);
      for (size_t i = 0; made && i < kMany; ++i) {
        (void)fs.Create(caller, made->ino, std::to_string(i), 0666);
      }
    }
  });
}

TEST_F(FuseMountTest, AScanForNamesGetsTheAttributesOfTheFirstOnly) {
  ASSERT_NO_FATAL_FAILURE(Mount(LargeDirectories()));
  ASSERT_EQ(List(mount().At("a")).size(), kMany + 2);
  const uint64_t first = count(Call::kLookup);
  EXPECT_GT(first, kMany / 10);
  EXPECT_LT(first, kMany / 2);
  ASSERT_EQ(List(mount().At("b")).size(), kMany + 2);
  EXPECT_LE(count(Call::kLookup), 2 * first);
}

TEST_F(FuseMountTest, AScanForAttributesGetsThemWithTheNames) {
  ASSERT_NO_FATAL_FAILURE(Mount(LargeDirectories()));
  for (const auto& name : List(mount().At("a"))) {
    ASSERT_TRUE(Exists(mount().At("a/" + name)));
  }
  const auto names = List(mount().At("b"));
  const uint64_t listed = count(Call::kLookup);
  EXPECT_GE(listed, 2 * kMany);
  for (const auto& name : names) {
    ASSERT_TRUE(Exists(mount().At("b/" + name)));
  }
  EXPECT_EQ(count(Call::kLookup), listed);
}

TEST_F(FuseMountTest, OpenWithTruncateArrivesAsSetAttr) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_EQ(ReadFile(mount().At("file")), "content");
  ASSERT_TRUE(WriteFile(mount().At("file"), "", O_TRUNC));
  EXPECT_EQ(count(Call::kSetAttr), 1U);
  EXPECT_EQ(ReadFile(mount().At("file")), "");
}

TEST_F(FuseMountTest, CreatedFileIsWrittenAndReadBack) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  ASSERT_TRUE(WriteFile(mount().At("new"), "hello"));
  EXPECT_EQ(count(Call::kCreate), 1U);
  EXPECT_EQ(log().last_pid, static_cast<uint32_t>(::getpid()));
  EXPECT_EQ(ReadFile(mount().At("new")), "hello");
  EXPECT_THAT(List(mount().path()), ElementsAre(".", "..", "new"));
}

TEST_F(FuseMountTest, OwnWritesKeepThePageCache) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_EQ(ReadFile(mount().At("file")), "content");
  const uint64_t before = count(Call::kRead);
  ASSERT_TRUE(WriteFile(mount().At("file"), "CON", 0));
  EXPECT_EQ(ModeOf(mount().At("file")), 0644);
  EXPECT_EQ(ReadFile(mount().At("file")), "CONtent");
  EXPECT_EQ(count(Call::kRead), before);
}

TEST_F(FuseMountTest, MebibyteWriteIsOneCall) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  ASSERT_TRUE(WriteFile(mount().At("big"), std::string(1 << 20, 'b')));
  EXPECT_EQ(count(Call::kWrite), 1U);
  EXPECT_EQ(log().last_write_size, 1U << 20);
}

TEST_F(FuseMountTest, WhoStoredThroughAMappingIsNotKnown) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const UniqueFd file(::open(mount().At("file").c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  ASSERT_EQ(::pwrite(file.get(), "C", 1, 0), 1);
  EXPECT_TRUE(log().last_known);
  void* page =
      ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
  ASSERT_NE(page, MAP_FAILED);
  static_cast<char*>(page)[1] = 'O';
  EXPECT_EQ(::msync(page, 4096, MS_SYNC), 0);
  EXPECT_FALSE(log().last_known);
  EXPECT_EQ(count(Call::kWrite), 2U);
  ::munmap(page, 4096);
}

TEST_F(FuseMountTest, SecurityLabelsAreAskedForOncePerFileAtMost) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(WriteFile(mount().At("file"), "x", 0));
  }
  EXPECT_LE(count(Call::kGetXattr), 1U);
}

ServeOptions SetUserIdFile() {
  ServeOptions options =
      Files([](MemoryFilesystem& fs) { fs.AddFile("program", "#!", 06777); });
  options.mount.allow_other = OrdinaryUser() != ::geteuid();
  return options;
}

TEST_F(FuseMountTest, WriteByOrdinaryUserKillsSetUserId) {
  ASSERT_NO_FATAL_FAILURE(Mount(SetUserIdFile()));
  ASSERT_EQ(ModeOf(mount().At("program")), 06777U);
  ASSERT_TRUE(RunAs(OrdinaryUser(), [this] {
    return WriteFile(mount().At("program"), "##", 0);
  }));
  EXPECT_TRUE(log().last_write_kills);
  EXPECT_EQ(log().last_uid, OrdinaryUser());
  EXPECT_EQ(ModeOf(mount().At("program")), 0777U);
}

TEST_F(FuseMountTest, TruncateByOrdinaryUserKillsSetUserId) {
  ASSERT_NO_FATAL_FAILURE(Mount(SetUserIdFile()));
  ASSERT_TRUE(RunAs(OrdinaryUser(), [this] {
    return ::truncate(mount().At("program").c_str(), 1) == 0;
  }));
  EXPECT_TRUE(log().last_setattr_kills);
  EXPECT_EQ(ModeOf(mount().At("program")), 0777U);
}

TEST_F(FuseMountTest, WriteByRootKeepsSetUserId) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_NO_FATAL_FAILURE(Mount(SetUserIdFile()));
  ASSERT_TRUE(WriteFile(mount().At("program"), "##", 0));
  EXPECT_FALSE(log().last_write_kills);
  EXPECT_EQ(ModeOf(mount().At("program")), 06777U);
}

TEST_F(FuseMountTest, InvalidateShowsTheNewStateWithoutRemount) {
  ASSERT_NO_FATAL_FAILURE(Mount(Files([](MemoryFilesystem& fs) {
    fs.AddFile("changed", "before");
    fs.AddFile("gone", "");
  })));
  const UniqueFd open(
      ::open(mount().At("changed").c_str(), O_RDONLY | O_CLOEXEC));
  ASSERT_EQ(ReadFile(mount().At("changed")), "before");
  ASSERT_TRUE(Exists(mount().At("gone")));
  ASSERT_FALSE(Exists(mount().At("fresh")));
  List(mount().path());
  ASSERT_EQ(mount().SwapAndInvalidate(), 0);
  EXPECT_EQ(ReadFile(mount().At("changed")), "swapped");
  char through_open_file[16] = {};
  EXPECT_EQ(::read(open.get(), through_open_file, 16), 7);
  EXPECT_STREQ(through_open_file, "swapped");
  EXPECT_FALSE(Exists(mount().At("gone")));
  EXPECT_EQ(ReadFile(mount().At("fresh")), "fresh");
  EXPECT_THAT(List(mount().path()), ElementsAre(".", "..", "changed", "fresh"));
}

/// What inotify reports of a directory, each as "MASK NAME".
class DirectoryWatch {
 public:
  explicit DirectoryWatch(const std::string& path)
      : fd_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    EXPECT_GE(::inotify_add_watch(
                  fd_.get(), path.c_str(),
                  IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVE),
              0);
  }

  std::vector<std::string> Take() {
    alignas(inotify_event) std::array<char, 1 << 16> buffer;
    std::vector<std::string> lines;
    const ssize_t n = ::read(fd_.get(), buffer.data(), buffer.size());
    for (ssize_t at = 0; at < n;) {
      const auto* event =
          reinterpret_cast<const inotify_event*>(buffer.data() + at);
      std::string line = (event->mask & IN_MODIFY) != 0   ? "modify "
                         : (event->mask & IN_ATTRIB) != 0 ? "attrib "
                         : (event->mask & IN_CREATE) != 0 ? "create "
                         : (event->mask & IN_DELETE) != 0 ? "delete "
                                                          : "other ";
      if (event->len != 0) line += event->name;
      if ((event->mask & IN_ISDIR) != 0) line += "/";
      lines.push_back(line);
      at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
    }
    return lines;
  }

 private:
  UniqueFd fd_;
};

PathEvent EventAtRoot(PathEvent::Kind kind, const std::string& name,
                      bool is_directory = false) {
  return {.kind = kind,
          .parent = kRootIno,
          .directory = {},
          .name = name,
          .is_directory = is_directory};
}

ServeOptions Announced() {
  using Kind = PathEvent::Kind;
  ServeOptions options;
  options.prepare = [](MemoryFilesystem& fs) {
    fs.AddFile("changed", "before");
    fs.AddFile("gone", "");
    fs.AddFile("stays", "");
  };
  options.events = {EventAtRoot(Kind::kChanged, "changed"),
                    EventAtRoot(Kind::kWent, "gone"),
                    EventAtRoot(Kind::kCame, "fresh"),
                    EventAtRoot(Kind::kWent, "directory", true),
                    EventAtRoot(Kind::kChanged, "", true),
                    // Errors, which must have no effect.
                    EventAtRoot(Kind::kWent, "stays"),
                    {.kind = Kind::kCame,
                     .parent = Ino{77},
                     .directory = {},
                     .name = "elsewhere"}};
  return options;
}

TEST_F(FuseMountTest, AnnouncedPathsHaveEventsAndNothingElse) {
  ASSERT_NO_FATAL_FAILURE(Mount(Announced()));
  for (const char* name : {"changed", "gone", "stays"}) {
    ASSERT_TRUE(Exists(mount().At(name)));
  }
  ASSERT_FALSE(Exists(mount().At("fresh")));
  DirectoryWatch watch(mount().path());
  ASSERT_EQ(mount().SwapAndInvalidate(), 0);
  EXPECT_THAT(watch.Take(), ElementsAre());
  ASSERT_EQ(mount().Announce(), 0);
  EXPECT_THAT(watch.Take(),
              ElementsAre("modify changed", "delete gone", "create fresh",
                          "delete directory/", "attrib /"));
  EXPECT_EQ(count(Call::kSetAttr), 0U);
  EXPECT_EQ(count(Call::kCreate), 0U);
  EXPECT_EQ(ReadFile(mount().At("changed")), "swapped");
  EXPECT_EQ(ReadFile(mount().At("fresh")), "fresh");
  EXPECT_THAT(List(mount().path()),
              ElementsAre(".", "..", "changed", "fresh", "stays"));
  // A process is served as before.
  EXPECT_EQ(::utimensat(AT_FDCWD, mount().At("changed").c_str(), nullptr, 0),
            0);
  EXPECT_EQ(count(Call::kSetAttr), 1U);
}

/// Another filesystem that covers the mount is not the daemon's to touch.
TEST_F(FuseMountTest, NothingIsAnnouncedToWhatCoversTheMount) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  ASSERT_NO_FATAL_FAILURE(Mount(Announced()));
  const std::string path = mount().path();
  ASSERT_EQ(::mount("tmpfs", path.c_str(), "tmpfs", 0, nullptr), 0);
  EXPECT_TRUE(WriteFile(mount().At("gone"), "theirs"));
  EXPECT_TRUE(WriteFile(mount().At("changed"), "theirs"));
  DirectoryWatch watch(path);
  EXPECT_EQ(mount().Announce(), 0);
  EXPECT_THAT(watch.Take(), ElementsAre());
  EXPECT_THAT(List(path), ElementsAre(".", "..", "changed", "gone"));
  EXPECT_EQ(::umount2(path.c_str(), 0), 0);
  // Nothing keeps the mount busy.
  EXPECT_EQ(mount().Announce(), 0);
  EXPECT_EQ(mount().Unmount(false), 0);
}

TEST_F(FuseMountTest, RenameFlagsBecomeModes) {
  ASSERT_NO_FATAL_FAILURE(Mount(Files([](MemoryFilesystem& fs) {
    fs.AddFile("a", "A");
    fs.AddFile("b", "B");
  })));
  const std::string a = mount().At("a");
  const std::string b = mount().At("b");
  const std::string c = mount().At("c");
  const auto rename = [](const std::string& from, const std::string& to,
                         unsigned flags) {
    return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags);
  };
  ASSERT_EQ(rename(a, b, RENAME_EXCHANGE), 0);
  EXPECT_EQ(log().last_rename_mode, static_cast<int>(RenameMode::kExchange));
  EXPECT_EQ(ReadFile(a), "B");
  ASSERT_EQ(rename(a, c, RENAME_NOREPLACE), 0);
  EXPECT_EQ(log().last_rename_mode, static_cast<int>(RenameMode::kNoReplace));
  ASSERT_EQ(rename(c, b, 0), 0);
  EXPECT_EQ(log().last_rename_mode, static_cast<int>(RenameMode::kReplace));
  EXPECT_EQ(ReadFile(b), "B");
  EXPECT_EQ(rename(b, a, RENAME_WHITEOUT), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(FuseMountTest, AllocateFlagsBecomeModes) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const UniqueFd fd(::open(mount().At("file").c_str(), O_RDWR | O_CLOEXEC));
  const struct {
    int flags;
    AllocateMode mode;
  } cases[] = {
      {0, AllocateMode::kReserve},
      {FALLOC_FL_KEEP_SIZE, AllocateMode::kReserveKeepSize},
      {FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, AllocateMode::kPunchHole},
      {FALLOC_FL_ZERO_RANGE, AllocateMode::kZero},
      {FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, AllocateMode::kZeroKeepSize},
  };
  for (const auto& c : cases) {
    ASSERT_EQ(::fallocate(fd.get(), c.flags, 0, 4), 0) << c.flags;
    EXPECT_EQ(log().last_allocate_mode, static_cast<int>(c.mode)) << c.flags;
  }
  EXPECT_EQ(::fallocate(fd.get(), FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
}

TEST_F(FuseMountTest, XattrsAnswerProbesAndSmallBuffers) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const std::string path = mount().At("file");
  const char* file = path.c_str();
  char room[16];
  ASSERT_EQ(::setxattr(file, "user.a", "value", 5, XATTR_CREATE), 0);
  EXPECT_EQ(::setxattr(file, "user.a", "value", 5, XATTR_CREATE), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(::setxattr(file, "user.b", "", 0, XATTR_REPLACE), -1);
  EXPECT_EQ(errno, ENODATA);
  EXPECT_EQ(::getxattr(file, "user.a", nullptr, 0), 5);
  EXPECT_EQ(::getxattr(file, "user.a", room, 4), -1);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(::getxattr(file, "user.a", room, 16), 5);
  EXPECT_EQ(::listxattr(file, room, 16), 7);
  EXPECT_EQ(std::string(room, 7), std::string("user.a\0", 7));
  EXPECT_EQ(::removexattr(file, "user.a"), 0);
  EXPECT_EQ(::listxattr(file, nullptr, 0), 0);
}

TEST_F(FuseMountTest, TimesSymlinksSeekCopyAndSpaceReachTheFilesystem) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const std::string file = mount().At("file");
  const timespec times[] = {{1, 2}, {1'000'000'000, 123'456'789}};
  ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  struct stat st{};
  ASSERT_EQ(::stat(file.c_str(), &st), 0);
  EXPECT_EQ(st.st_mtim.tv_nsec, 123'456'789);
  ASSERT_EQ(::symlink("target", mount().At("link").c_str()), 0);
  char target[16] = {};
  EXPECT_EQ(::readlink(mount().At("link").c_str(), target, 16), 6);
  const UniqueFd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(::lseek(from.get(), 2, SEEK_HOLE), 7);
  EXPECT_EQ(::lseek(from.get(), 7, SEEK_DATA), -1);
  EXPECT_EQ(errno, ENXIO);
  const UniqueFd to(
      ::open(mount().At("copy").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  off64_t from_offset = 3;
  EXPECT_EQ(
      ::copy_file_range(from.get(), &from_offset, to.get(), nullptr, 4, 0), 4);
  EXPECT_EQ(ReadFile(mount().At("copy")), "tent");
  EXPECT_EQ(::fsync(to.get()), 0);
  EXPECT_EQ(count(Call::kSync), 1U);
  struct statvfs space{};
  ASSERT_EQ(::statvfs(mount().path().c_str(), &space), 0);
  EXPECT_EQ(space.f_blocks, 12345U);
}

// The kernel forgets the pages of a direct write when it returns. A page that
// was read after the kernel sent the write and before it was carried out has
// the old content.
TEST_F(FuseMountTest, PagesThatWereReadDuringADirectWriteAreForgotten) {
  constexpr size_t kSize = 8192;
  for (const bool asynchronous : {false, true}) {
    SCOPED_TRACE(asynchronous ? "io_submit" : "pwrite");
    const UniqueFd arrived(::eventfd(0, EFD_CLOEXEC));
    const UniqueFd go(::eventfd(0, EFD_CLOEXEC));
    ASSERT_NO_FATAL_FAILURE(Mount(Files([&](MemoryFilesystem& fs) {
      fs.AddFile("file", std::string(kSize, 'o'));
      fs.HoldWrites(arrived.get(), go.get());
    })));
    const std::string path = mount().At("file");
    const UniqueFd direct(
        ::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
    const UniqueFd both(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_TRUE(direct.valid() && both.valid());
    const Mapping map(both.get(), kSize, MAP_SHARED);
    ASSERT_TRUE(map.valid());
    alignas(4096) static char block[4096];
    std::memset(block, 'n', sizeof block);
    int64_t written = 0;
    std::thread writer([&] {
      written = asynchronous
                    ? WriteAsynchronously(direct.get(), {block, 4096}, 0)
                    : ::pwrite(direct.get(), block, sizeof block, 0);
    });
    eventfd_t ignored = 0;
    ASSERT_EQ(::eventfd_read(arrived.get(), &ignored), 0);
    EXPECT_EQ(ReadFile(path), std::string(kSize, 'o'));
    EXPECT_EQ(map.data()[0], 'o');
    ASSERT_EQ(::eventfd_write(go.get(), 1), 0);
    writer.join();
    EXPECT_EQ(written, 4096);
    EXPECT_EQ(ReadFile(path), std::string(4096, 'n') + std::string(4096, 'o'));
    EXPECT_EQ(map.data()[0], 'n');
    EXPECT_EQ(map.data()[4096], 'o');
  }
}

TEST_F(FuseMountTest, ExceptionFailsOneRequestOnly) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  EXPECT_FALSE(Exists(mount().At("out-of-memory")));
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(ReadFile(mount().At("file")), "content");
}

TEST_F(FuseMountTest, ManyThreadsAreServed) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string name = std::to_string(t) + "-" + std::to_string(i);
        EXPECT_TRUE(WriteFile(mount().At(name), name));
        EXPECT_EQ(ReadFile(mount().At(name)), name);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(List(mount().path()).size(), 402U);
}

TEST_F(FuseMountTest, ReadOnlyMountRefusesWrites) {
  ServeOptions options = OneFile();
  options.mount.read_only = true;
  ASSERT_NO_FATAL_FAILURE(Mount(std::move(options)));
  EXPECT_FALSE(WriteFile(mount().At("new"), "x"));
  EXPECT_EQ(errno, EROFS);
}

TEST_F(FuseMountTest, TableShowsTypeSourceAndOptions) {
  ServeOptions options;
  options.mount.source = "/odd, name\\with\nnewline";
  options.mount.kernel_options = {"noatime", "noexec"};
  ASSERT_NO_FATAL_FAILURE(Mount(std::move(options)));
  const auto found = FindTxfsMount(mount().At("deep/below/"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->mountpoint, mount().path());
  EXPECT_EQ(found->type, "fuse.txfs");
  EXPECT_EQ(found->source, "/odd, name\\with\nnewline");
  EXPECT_THAT(found->options, HasSubstr("noatime"));
  EXPECT_THAT(found->options, HasSubstr("noexec"));
  EXPECT_THAT(found->options, HasSubstr("default_permissions"));
}

TEST_F(FuseMountTest, StopEndsRunAndTheMount) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_EQ(ReadFile(mount().At("file")), "content");
  ASSERT_EQ(mount().Stop(), 0);
  EXPECT_EQ(mount().WaitForEnd(), 0);
  EXPECT_FALSE(FindTxfsMount(mount().path()));
}

TEST_F(FuseMountTest, UnmountEndsRun) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  ASSERT_EQ(ReadFile(mount().At("file")), "content");
  EXPECT_EQ(mount().Unmount(false), 0);
  EXPECT_EQ(mount().WaitForEnd(), 0);
}

TEST_F(FuseMountTest, UnmountFromOutsideEndsRun) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  ASSERT_TRUE(UnmountPath(mount().path(), false));
  EXPECT_EQ(mount().WaitForEnd(), 0);
}

TEST_F(FuseMountTest, BusyMountStaysUnlessUnmountedLazily) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  UniqueFd open(::open(mount().At("file").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(mount().Unmount(false), EBUSY);
  EXPECT_EQ(ReadFile(mount().At("file")), "content");
  EXPECT_EQ(mount().Unmount(true), 0);
  EXPECT_FALSE(FindTxfsMount(mount().path()));
  open.Reset();
  EXPECT_EQ(mount().WaitForEnd(), 0);
}

TEST_F(FuseMountTest, UsersOfTheMountAreNamed) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const std::string file = mount().At("file");
  const pid_t user = ::fork();
  if (user == 0) {
    if (::open(file.c_str(), O_RDONLY) >= 0) ::pause();
    ::_exit(1);
  }
  const auto entry = FindTxfsMount(mount().path());
  ASSERT_TRUE(entry);
  std::vector<ProcessRef> found;
  while (found.empty() && ::waitpid(user, nullptr, WNOHANG) == 0) {
    found = ProcessesUsing("", entry->device());
  }
  ::kill(user, SIGKILL);
  ::waitpid(user, nullptr, 0);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, user);
  EXPECT_THAT(found[0].what, HasSubstr("fd "));
}

TEST_F(FuseMountTest, DeadMountIsFoundAndRemoved) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  EXPECT_FALSE(IsMountDead(mount().path()));
  mount().Kill();
  EXPECT_TRUE(IsMountDead(mount().path()));
  ASSERT_TRUE(FindTxfsMount(mount().At("below")));
  ServedMount unused;  // a mountpoint elsewhere is not affected
  EXPECT_FALSE(IsMountDead(unused.path()));
  ASSERT_TRUE(UnmountPath(mount().path(), false));
  EXPECT_FALSE(FindTxfsMount(mount().path()));
}

TEST_F(FuseMountTest, MountsOverTheDirectoryThatItStandsOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "fusermount3 does not do it over FUSE";
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const UniqueFd root(
      ::open(mount().path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  CallLog upper_log;
  MemoryFilesystem upper(upper_log);
  MountOptions options;
  options.mountpoint = mount().path();
  options.source = "upper";
  const auto session = FuseSession::Mount(upper, options);
  ASSERT_TRUE(session);
  EXPECT_EQ(FindTxfsMount(mount().path())->source, "upper");
  EXPECT_EQ(ReadFile("/proc/self/fd/" + std::to_string(root.get()) + "/file"),
            "content");
  EXPECT_TRUE((*session)->Unmount(false));
  EXPECT_EQ(FindTxfsMount(mount().path())->source, "/the/workspace");
}

/// What an attacker does who may write to the mountpoint's parent: the
/// mountpoint is a directory and a link to another one in turn.
class Swapper {
 public:
  Swapper(std::string a, std::string b)
      : thread_([this, a = std::move(a), b = std::move(b)] {
          while (!stop_) {
            std::ignore = ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(),
                                      RENAME_EXCHANGE);
          }
        }) {}
  ~Swapper() {
    stop_ = true;
    thread_.join();
  }
  Swapper(const Swapper&) = delete;
  Swapper& operator=(const Swapper&) = delete;

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

/// A directory for mountpoints. What is still mounted at its names goes with
/// it.
class SwapScene {
 public:
  SwapScene() {
    char path[] = "/tmp/txfs-fuse-test.XXXXXX";
    if (::mkdtemp(path) != nullptr) top_ = path;
  }
  ~SwapScene() {
    for (const char* name : {"/mnt", "/link", "/victim"}) {
      ::umount2((top_ + name).c_str(), MNT_DETACH);
    }
    EXPECT_EQ(system(("rm -rf " + top_).c_str()), 0);
  }
  SwapScene(const SwapScene&) = delete;
  SwapScene& operator=(const SwapScene&) = delete;
  const std::string& top() const { return top_; }

 private:
  std::string top_;
};

TEST_F(FuseMountTest, RootMountsWhereItLookedOrNowhere) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const SwapScene scene;
  const std::string& top = scene.top();
  ASSERT_FALSE(top.empty());
  for (const char* name : {"/mnt", "/victim"}) {
    ASSERT_EQ(::mkdir((top + name).c_str(), 0755), 0);
  }
  ASSERT_EQ(::symlink("victim", (top + "/link").c_str()), 0);
  struct stat st{};
  ASSERT_EQ(::stat((top + "/mnt").c_str(), &st), 0);
  MountOptions options;
  options.mountpoint = top + "/mnt";
  options.checked = ObjectId{.device = st.st_dev, .ino = st.st_ino};
  options.source = top;
  // As long as nothing is swapped it is mounted.
  const auto calm = MountFuse(options);
  ASSERT_TRUE(calm);
  ASSERT_TRUE(UnmountPath(options.mountpoint, false, calm->entry.device()));
  {
    const Swapper swapper(top + "/mnt", top + "/link");
    for (int i = 0; i < 300; ++i) {
      const auto made = MountFuse(options);
      const auto table = ReadMountTable();
      ASSERT_TRUE(table);
      for (const MountEntry& entry : *table) {
        if (entry.source != top) continue;
        ASSERT_TRUE(made) << "left behind at " << entry.mountpoint;
        EXPECT_EQ(entry.mountpoint, top + "/mnt");
      }
      if (!made) continue;
      // Mounted at, it cannot be exchanged.
      EXPECT_TRUE(UnmountPath(options.mountpoint, false, made->entry.device()));
    }
  }
}

TEST_F(FuseMountTest, ADirectoryThatWasNotCheckedIsNotMountedAt) {
  CallLog log;
  MemoryFilesystem fs(log);
  char path[] = "/tmp/txfs-fuse-test.XXXXXX";
  ASSERT_NE(::mkdtemp(path), nullptr);
  MountOptions options;
  options.mountpoint = path;
  options.checked = ObjectId{.device = 1, .ino = 2};
  const auto session = FuseSession::Mount(fs, options);
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message, HasSubstr("another directory"));
  EXPECT_FALSE(FindAnyTxfsMount(path));
  ::rmdir(path);
}

TEST_F(FuseMountTest, OnlyWhatIsMeantIsUnmounted) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const auto entry = FindTxfsMount(mount().path());
  ASSERT_TRUE(entry);
  // One that is not there is unmounted already.
  EXPECT_TRUE(UnmountPath(mount().path(), false, entry->device() + 1));
  const std::string link = mount().path() + ".link";
  ASSERT_EQ(::symlink("/tmp", link.c_str()), 0);
  EXPECT_FALSE(UnmountPath(
      link + mount().path().substr(mount().path().rfind('/')), false));
  ::unlink(link.c_str());
  EXPECT_TRUE(FindTxfsMount(mount().path()));
  if (::geteuid() == 0) {
    ASSERT_EQ(::mount("none", mount().path().c_str(), "tmpfs", 0, nullptr), 0);
    const Status hidden = UnmountPath(mount().path(), true, entry->device());
    ASSERT_EQ(::umount(mount().path().c_str()), 0);
    ASSERT_FALSE(hidden);
    EXPECT_THAT(hidden.error().message, HasSubstr("no longer the same mount"));
  }
  EXPECT_TRUE(UnmountPath(mount().path(), false, entry->device()));
  EXPECT_FALSE(FindTxfsMount(mount().path()));
}

TEST_F(FuseMountTest, WhatAnotherHasUnmountedIsNoFailure) {
  ASSERT_NO_FATAL_FAILURE(Mount(OneFile()));
  const auto entry = FindTxfsMount(mount().path());
  ASSERT_TRUE(entry);
  ASSERT_TRUE(UnmountPath(mount().path(), true, entry->device()));
  EXPECT_TRUE(UnmountPath(mount().path(), true, entry->device()));
  const std::string gone = mount().path() + "-gone";
  EXPECT_TRUE(UnmountPath(gone, true, entry->device()));
  EXPECT_FALSE(UnmountPath(gone, true));
}

/// Mounting as an ordinary user. Root gives nobody a /dev/fuse that users may
/// open: in a mount namespace of the test's own, so that the machine's stays as
/// it is.
class FuseUserMountTest : public FuseMountTest {
 protected:
  void SetUp() override {
    FuseMountTest::SetUp();
    NeedFusermount();
    if (IsSkipped() || ::geteuid() != 0) return;
    if (!OpenDeviceToAll()) GTEST_SKIP() << "needs a mount namespace";
  }

  static ServeOptions AsOrdinaryUser() {
    ServeOptions options = OneFile();
    options.uid = OrdinaryUser();
    return options;
  }

 private:
  static bool OpenDeviceToAll() {
    char dir[] = "/tmp/txfs-fuse-device.XXXXXX";
    if (::mkdtemp(dir) == nullptr) return false;
    const std::string device = std::string(dir) + "/fuse";
    const bool done =
        ::unshare(CLONE_NEWNS) == 0 &&
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("none", dir, "tmpfs", 0, nullptr) == 0 &&
        ::mknod(device.c_str(), S_IFCHR, ::makedev(10, 229)) == 0 &&
        ::chmod(device.c_str(), 0666) == 0 &&
        ::mount(device.c_str(), "/dev/fuse", nullptr, MS_BIND, nullptr) == 0;
    ::umount2(dir, MNT_DETACH);
    ::rmdir(dir);
    return done;
  }
};

TEST_F(FuseUserMountTest, OrdinaryUserMountsAndUnmounts) {
  ServeOptions options = AsOrdinaryUser();
  options.mount.source = "/odd, name\\end";
  options.mount.kernel_options = {"noatime", "relatime"};
  ASSERT_NO_FATAL_FAILURE(Mount(std::move(options)));
  const auto entry = FindAnyTxfsMount(mount().path());
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->source, "/odd, name\\end");
  EXPECT_TRUE(RunAs(OrdinaryUser(), [this] {
    return ReadFile(mount().At("file")) == "content";
  }));
  EXPECT_EQ(mount().Unmount(false), 0);
  EXPECT_EQ(mount().WaitForEnd(), 0);
  EXPECT_FALSE(FindAnyTxfsMount(mount().path()));
}

TEST_F(FuseUserMountTest, BusyMountOfAnOrdinaryUserStays) {
  ASSERT_NO_FATAL_FAILURE(Mount(AsOrdinaryUser()));
  EXPECT_TRUE(RunAs(OrdinaryUser(), [this] {
    const UniqueFd open(::open(mount().At("file").c_str(), O_RDONLY));
    return open.valid() && mount().Unmount(false) == EBUSY;
  }));
  EXPECT_TRUE(FindAnyTxfsMount(mount().path()));
  EXPECT_EQ(mount().Unmount(true), 0);
  EXPECT_EQ(mount().WaitForEnd(), 0);
}

TEST_F(FuseUserMountTest, OrdinaryUserNeedsLeaveToAllowOthers) {
  if (ReadFile("/etc/fuse.conf").find("\nuser_allow_other") !=
      std::string::npos) {
    GTEST_SKIP() << "/etc/fuse.conf allows it";
  }
  ServeOptions options = AsOrdinaryUser();
  options.mount.allow_other = true;
  const ServedMount served(std::move(options));
  ASSERT_TRUE(served.error());
  EXPECT_THAT(*served.error(), HasSubstr("add the line user_allow_other"));
}

TEST_F(FuseMountTest, DeadMountIsNotMountedOver) {
  ASSERT_NO_FATAL_FAILURE(Mount());
  mount().Kill();
  CallLog upper_log;
  MemoryFilesystem upper(upper_log);
  MountOptions options;
  options.mountpoint = mount().path();
  const auto session = FuseSession::Mount(upper, options);
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().hint, HasSubstr("txfs umount"));
}

TEST_F(FuseMountTest, ErrorsNameThePathAndTheRemedy) {
  CallLog log;
  MemoryFilesystem fs(log);
  const struct {
    MountOptions options;
    int code;
    const char* hint;
  } cases[] = {
      {{.mountpoint = "/no/such/place"}, ENOENT, "mkdir -p /no/such/place"},
      {{.mountpoint = "/etc/passwd"}, ENOTDIR, "directory"},
      {{.mountpoint = "/tmp", .kernel_options = {"fast"}}, 0, "txfs(1)"},
  };
  for (const auto& c : cases) {
    const auto session = FuseSession::Mount(fs, c.options);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().code, c.code);
    EXPECT_EQ(session.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(session.error().hint, HasSubstr(c.hint));
  }
}

}  // namespace
}  // namespace txfs::testing

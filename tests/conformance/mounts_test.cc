#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "fs/base/base_mounts.h"
#include "fs/host/mount_table.h"
#include "journal/support/unique_fd.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

/// The file `source` mounted at the file `path`.
class FileMount {
 public:
  FileMount(const std::string& source, std::string path)
      : path_(std::move(path)) {
    EXPECT_EQ(::mount(source.c_str(), path_.c_str(), "", MS_BIND, nullptr), 0);
  }
  ~FileMount() { ::umount2(path_.c_str(), MNT_DETACH); }
  FileMount(const FileMount&) = delete;
  FileMount& operator=(const FileMount&) = delete;

 private:
  std::string path_;
};

/// A base in which another filesystem is mounted at `sub`.
class SubmountTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    mount_.emplace(base_.root() + "/sub", "size=4m");
    base_.File("f", "on the root's");
    base_.File("d/f", "1");
    base_.File("sub/f", "on the mount");
    base_.File("sub/d/f", "2");
    base_.HardLink("sub/f", "sub/link");
    Start();
  }

  void Start() {
    auto started = CoreDriver::Start(
        base_.root(),
        {.journal = {.intake_bytes = 256 << 10, .background_drain = false}});
    ASSERT_OK(started);
    driver_ = std::move(*started);
  }

  CoreDriver& fs() { return *driver_; }
  [[nodiscard]] bool HasParts() const {
    return std::filesystem::exists(base_.root() + "/sub/" + kMountVaults);
  }

  TempDir scratch_;
  BaseTree base_{scratch_.path() + "/ws"};
  std::optional<TempMount> mount_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(SubmountTest, DirectoriesAndHardLinksDoNotCross) {
  EXPECT_ERRNO(fs().Rename("d", "sub/e", 0), EXDEV);
  EXPECT_ERRNO(fs().Rename("sub/d", "e", 0), EXDEV);
  EXPECT_ERRNO(fs().Rename("sub/f", "g", 0), EXDEV);
  EXPECT_ERRNO(fs().Link("f", "sub/g"), EXDEV);
  ASSERT_OK(fs().Mkdir("new", 0755));
  EXPECT_ERRNO(fs().Rename("new", "sub/new", 0), EXDEV);
  ASSERT_OK(fs().Rename("f", "sub/g", 0));
  EXPECT_ERRNO(fs().Link("sub/g", "g"), EXDEV);
  EXPECT_OK(fs().Link("sub/g", "sub/h"));
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("sub/h"), "on the root's");
}

TEST_F(SubmountTest, AMountpointIsBusy) {
  EXPECT_ERRNO(fs().Rename("sub", "sub2", 0), EBUSY);
  ASSERT_OK(fs().RemoveRecursively("sub/d"));
  for (const char* name : {"sub/f", "sub/link"}) ASSERT_OK(fs().Unlink(name));
  EXPECT_ERRNO(fs().Rmdir("sub"), EBUSY);
  ASSERT_OK(fs().Commit());
  EXPECT_FALSE(base_.Exists("sub/f"));
  ASSERT_OK(fs().Undo(""));
  EXPECT_EQ(base_.Read("sub/link"), "on the mount");
}

TEST_F(SubmountTest, ADirectoryAboveAMountStays) {
  base_.Directory("above/in");
  const TempMount inner(base_.root() + "/above/in/mount");
  ASSERT_OK(fs().Rename("above", "moved", 0));
  const Status refused = fs().Commit();
  EXPECT_ERRNO(refused, EXDEV);
  EXPECT_NE(refused.error().message.find("above/in/mount"), std::string::npos);
  ASSERT_OK(fs().Rename("moved", "above", 0));
  EXPECT_OK(fs().Commit());
}

TEST_F(SubmountTest, UsersDoNotSeeTheVault) {
  ASSERT_OK(fs().WriteFile("sub/f", "changed"));
  ASSERT_OK(fs().WriteFile("sub/new", "new"));
  ASSERT_OK(fs().Commit());
  EXPECT_TRUE(HasParts());
  EXPECT_EQ(fs().Names("sub").value(),
            (std::vector<std::string>{"d", "f", "link", "new"}));
  EXPECT_ERRNO(fs().Stat(std::string("sub/") + kMountVaults), ENOENT);
  EXPECT_ERRNO(fs().Mkdir(std::string("d/") + kMountVaults, 0755), EPERM);
}

TEST_F(SubmountTest, ShowFindsContentInTheVaultOfTheMount) {
  ASSERT_OK(fs().Unlink("sub/d/f"));
  ASSERT_OK(fs().Commit());
  Workspace& workspace = fs().workspace();
  const auto ids = workspace.store().history().Ids();
  ASSERT_OK(ids);
  const auto view = workspace.Show(ids->back());
  ASSERT_OK(view);
  ASSERT_EQ(view->changes.size(), 1U);
  EXPECT_EQ(view->changes[0].path, "sub/d/f");
  Bytes content(10);
  const auto n =
      workspace.ReadVault(view->changes[0].before->vault_path, 0, content);
  ASSERT_OK(n);
  EXPECT_EQ(AsText(ByteSpan(content).first(*n)), "2");
}

TEST_F(SubmountTest, AFullMountFailsTheCommitBeforeItTouchesAnything) {
  PosixDriver plain(base_.root());
  const auto seen = ViewTree(plain);
  ASSERT_OK(seen);
  const TreeView& before = *seen;
  ASSERT_OK(fs().WriteFile("sub/large", std::string(6 << 20, 'x')));
  ASSERT_OK(fs().WriteFile("f", "changed"));
  const TreeView worked = ViewTree(fs()).value();
  EXPECT_ERRNO(fs().Commit(), ENOSPC);
  EXPECT_FALSE(HasParts());
  TreeView after = ViewTree(plain).value();
  after[""] = before.at("");
  EXPECT_EQ(Compare(before, after, {.ctime = false}), "");
  EXPECT_EQ(Compare(worked, ViewTree(fs()).value(), {}), "");
  ASSERT_OK(fs().Truncate("sub/large", 1 << 20));
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("sub/large"), std::string(1 << 20, 'x'));
}

TEST_F(SubmountTest, UndoWaitsForTheMount) {
  ASSERT_OK(fs().WriteFile("sub/f", "changed"));
  ASSERT_OK(fs().Commit());
  ASSERT_OK(fs().WriteFile("f", "changed"));
  ASSERT_OK(fs().Commit());
  driver_.reset();
  mount_.reset();
  Start();
  ASSERT_OK(fs().Undo(""));
  EXPECT_EQ(base_.Read("f"), "on the root's");
  const Status refused = fs().Undo("");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("the filesystem at sub"),
            std::string::npos);
}

/// Two places of one filesystem: st_dev does not tell them apart.
TEST_F(SubmountTest, ABindMountIsAnotherFilesystem) {
  driver_.reset();
  base_.Directory("twice");
  base_.Directory("bound");
  const TempMount bound(base_.root() + "/twice", base_.root() + "/bound");
  Start();
  ASSERT_OK(fs().WriteFile("twice/h", "new"));
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("bound/h"), "new");
  ASSERT_OK(fs().Undo(""));
  EXPECT_FALSE(base_.Exists("bound/h"));
}

TEST_F(SubmountTest, NothingCrossesABindMount) {
  driver_.reset();
  base_.File("bound/f", "bound");
  base_.File("bound/d/f", "bound");
  base_.File("over", "over");
  const TempMount bound(base_.root() + "/twice", base_.root() + "/bound");
  const FileMount file(base_.root() + "/d/f", base_.root() + "/over");
  Start();
  // The mount of the workspace itself, which the other one is beside.
  PosixDriver plain(base_.root());
  ASSERT_OK(fs().Mkdir("new", 0755));
  for (Driver* driver : std::initializer_list<Driver*>{&plain, &fs()}) {
    Driver& on = *driver;
    EXPECT_ERRNO(on.Rename("f", "twice/g", 0), EXDEV);
    EXPECT_ERRNO(on.Rename("d", "twice/e", 0), EXDEV);
    EXPECT_ERRNO(on.Rename("twice/f", "g", 0), EXDEV);
    EXPECT_ERRNO(on.Rename("f", "twice/f", RENAME_EXCHANGE), EXDEV);
    EXPECT_ERRNO(on.Rename("twice", "away", 0), EBUSY);
    EXPECT_ERRNO(on.Rename("bound", "twice", RENAME_EXCHANGE), EBUSY);
    EXPECT_ERRNO(on.Rmdir("twice"), EBUSY);
    EXPECT_ERRNO(on.Link("f", "twice/g"), EXDEV);
    EXPECT_ERRNO(on.Link("twice/f", "g"), EXDEV);
    EXPECT_ERRNO(on.Unlink("over"), EBUSY);
    EXPECT_ERRNO(on.Rename("over", "moved", 0), EBUSY);
    EXPECT_ERRNO(on.Rename("f", "over", 0), EBUSY);
    EXPECT_ERRNO(on.Link("over", "g"), EXDEV);
  }
  EXPECT_ERRNO(fs().Rename("new", "twice/new", 0), EXDEV);
  ASSERT_OK(fs().Mkdir("twice/new", 0755));
  ASSERT_OK(fs().Rename("twice/f", "twice/new/f", 0));
  EXPECT_ERRNO(fs().Link("twice/new/f", "g"), EXDEV);
  ASSERT_OK(fs().Rename("twice/d", "twice/e", 0));
  EXPECT_ERRNO(fs().Rename("twice/e", "e", 0), EXDEV);
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("bound/new/f"), "bound");
  EXPECT_EQ(base_.Read("bound/e/f"), "bound");
}

TEST_F(SubmountTest, ABindMountCountsWhileItIsThere) {
  ASSERT_OK(fs().Mkdir("new", 0755));
  base_.Directory("bound");
  ASSERT_OK(fs().Stat("d/f"));
  {
    const TempMount bound(base_.root() + "/d", base_.root() + "/bound");
    EXPECT_ERRNO(fs().Rename("d", "e", 0), EBUSY);
    EXPECT_ERRNO(fs().Rename("f", "d/g", 0), EXDEV);
  }
  ASSERT_OK(fs().Rename("f", "d/g", 0));
  ASSERT_OK(fs().Rename("d", "e", 0));
  ASSERT_OK(fs().Commit());
  EXPECT_EQ(base_.Read("e/g"), "on the root's");
}

/// Kernels without STATX_MNT_ID tell it in /proc.
TEST_F(SubmountTest, ProcTellsTheSameMountAsStatx) {
  for (const char* path : {"/sub", "/d"}) {
    const UniqueFd fd(
        ::open((base_.root() + path).c_str(), O_PATH | O_CLOEXEC));
    ASSERT_TRUE(fd.valid());
    EXPECT_NE(MountIdOf(fd.get()), 0U);
    EXPECT_EQ(MountIdOf(fd.get()),
              static_cast<uint64_t>(MountIdOfDescriptor(fd.get())));
  }
}

}  // namespace
}  // namespace txfs::testing

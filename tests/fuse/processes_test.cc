#include "fs/host/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <set>

namespace txfs {
namespace {

/// A child that has done `prepare` and waits for its end.
class Child {
 public:
  explicit Child(const std::function<void()>& prepare) {
    int ready[2];
    if (::pipe2(ready, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      prepare();
      (void)!::write(ready[1], "r", 1);
      for (;;) ::pause();
    }
    char byte = 0;
    (void)!::read(ready[0], &byte, 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
};

class ProcessesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/txfs-processes.XXXXXX";
    ASSERT_NE(::mkdtemp(path), nullptr);
    dir_ = path;
    ASSERT_EQ(::mkdir(At("sub").c_str(), 0755), 0);
    ASSERT_EQ(::mkdir((dir_ + "-neighbour").c_str(), 0755), 0);
    struct stat st{};
    ASSERT_EQ(::stat(path, &st), 0);
    dev_ = st.st_dev;
  }
  void TearDown() override {
    ::rmdir(At("sub").c_str());
    ::rmdir(dir_.c_str());
    ::rmdir((dir_ + "-neighbour").c_str());
  }
  [[nodiscard]] std::string At(const std::string& name) const {
    return dir_ + "/" + name;
  }
  [[nodiscard]] std::vector<ProcessRef> Find() const {
    return ProcessesUsing(dir_, dev_);
  }

  std::string dir_;
  dev_t dev_ = 0;
};

TEST_F(ProcessesTest, WorkingDirectoryBelowIsFound) {
  const Child child([this] { (void)!::chdir(At("sub").c_str()); });
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].pid, child.pid());
  EXPECT_EQ(found[0].what, "cwd");
  EXPECT_FALSE(found[0].comm.empty());
}

TEST_F(ProcessesTest, OpenDirectoryIsFound) {
  const Child child([this] { ::open(dir_.c_str(), O_RDONLY); });
  const auto found = Find();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].what.substr(0, 3), "fd ");
}

TEST_F(ProcessesTest, NeighbourWithALongerNameIsNot) {
  const Child child([this] { (void)!::chdir((dir_ + "-neighbour").c_str()); });
  EXPECT_TRUE(Find().empty());
}

TEST_F(ProcessesTest, TheCallerIsLeftOut) {
  const int fd = ::open(dir_.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_TRUE(Find().empty());
  ::close(fd);
}

/// A page of a fresh file, mapped.
class Page {
 public:
  Page(const std::string& path, int protection, int flags) {
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat st{};
    if (fd < 0 || ::ftruncate(fd, 4096) != 0 || ::fstat(fd, &st) != 0) {
      std::abort();
    }
    ino_ = st.st_ino;
    at_ = ::mmap(nullptr, 4096, protection, flags, fd, 0);
    ::close(fd);
    ::unlink(path.c_str());
  }
  ~Page() { ::munmap(at_, 4096); }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  [[nodiscard]] ino_t ino() const { return ino_; }

 private:
  ino_t ino_ = 0;
  void* at_ = nullptr;
};

TEST_F(ProcessesTest, MappingsThroughWhichAFileCanBeStoredAreFound) {
  const Page read(At("read"), PROT_READ, MAP_SHARED);
  const Page copy(At("copy"), PROT_READ | PROT_WRITE, MAP_PRIVATE);
  const Page store(At("store"), PROT_READ | PROT_WRITE, MAP_SHARED);
  std::set<ino_t> any, storing;
  ForEachMapping(::getpid(), [&](const Mapping& mapping) {
    if (mapping.device == dev_) any.insert(mapping.ino);
    const bool is_meant = mapping.is_shared && mapping.may_store;
    EXPECT_EQ(mapping.ino == store.ino() && mapping.device == dev_,
              is_meant && mapping.device == dev_);
    return true;
  });
  EXPECT_TRUE(any.contains(read.ino()));
  EXPECT_TRUE(any.contains(copy.ino()));
  EXPECT_TRUE(any.contains(store.ino()));
  ForEachStoringMapping(::getpid(), [&](const Mapping& mapping) {
    if (mapping.device == dev_) storing.insert(mapping.ino);
    return true;
  });
  EXPECT_EQ(storing, std::set<ino_t>{store.ino()});
}

}  // namespace
}  // namespace txfs

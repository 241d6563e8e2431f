#include "fs/processes.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>

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

}  // namespace
}  // namespace txfs

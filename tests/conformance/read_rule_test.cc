#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/mapping.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// A mount decides when it begins whether a rule is about reading.
constexpr const char* kOneUnread = R"(
schema = 1

[[fs]]
id = "one-unread"
path = "/one"
ops = ["read"]
reason = "it is a secret"
suggest = "ask for it"
)";

constexpr const char* kUnread = R"(
schema = 1

[[fs]]
id = "unread"
path = ["secret", "/vault/**"]
ops = ["read"]
reason = "it is a secret"
suggest = "ask for it"

[[fs]]
id = "had-unread"
path = "/had"
layer = "base"
ops = ["read"]
reason = "it was there before"
suggest = "ask for it"
)";

/// Files that cannot be opened for reading.
class ReadRuleTest : public ConformanceTest {
 protected:
  ReadRuleTest() {
    base().Directory(".txfs", 0700);
    base().File(".txfs/policy.toml", kOneUnread);
    base().File("secret", "secret");
    base().File("sub/secret", "deep secret");
    base().File("vault/a/b", "in a vault");
    base().File("linked", "linked secret");
    base().HardLink("linked", "vault/linked");
    base().File("had", "had");
    base().File("one", "one");
    base().File("free", "free");
  }

  /// The filesystem with the rules.
  Driver& unread() {
    Driver& driver = fs();
    if (!uses_rules_) EXPECT_OK(driver.UsePolicy(kUnread));
    uses_rules_ = true;
    return driver;
  }

  void ExpectUnread(const string& path) {
    EXPECT_ERRNO(unread().Open(path, O_RDONLY, 0), EACCES) << path;
    EXPECT_ERRNO(unread().Open(path, O_RDWR, 0), EACCES) << path;
  }
  /// "RULE PATH ERRNO TIMES" of what was refused.
  vector<string> Refusals() {
    const auto refused = unread().ReadRefused();
    EXPECT_OK(refused);
    vector<string> words;
    for (const Refused& each : refused.value_or(vector<Refused>{})) {
      words.push_back(each.op + " " + each.path + " " + each.error + " by " +
                      each.rule + ", " + std::to_string(each.count));
    }
    return words;
  }

  /// The checks of the suite read everything.
  void TearDown() override {
    if (fs().has_base()) EXPECT_OK(fs().UsePolicy("schema = 1\n"));
    ConformanceTest::TearDown();
  }

 private:
  bool uses_rules_ = false;
};
FOR_DRIVERS(ReadRuleTest, Needs::kStore);

TEST_P(ReadRuleTest, AFileIsNotOpenedForReading) {
  ExpectUnread("secret");
  ExpectUnread("sub/secret");
  ExpectUnread("vault/a/b");
  ExpectUnread("had");
  EXPECT_EQ(Content("free"), "free");
  ASSERT_OK(unread().Symlink("sub/secret", "soft"));
  ExpectUnread("soft");
}

TEST_P(ReadRuleTest, ARefusedReadIsInTheEvidence) {
  ExpectUnread("secret");
  ExpectUnread("had");
  EXPECT_EQ(Refusals(), (vector<string>{"read secret EACCES by unread, 2",
                                        "read had EACCES by had-unread, 2"}));
}

TEST_P(ReadRuleTest, LookingAndWritingIsNotReading) {
  EXPECT_EQ(unread().Stat("secret")->st_size, 6);
  ASSERT_OK(fs().AppendFile("secret", "more"));
  ASSERT_OK(fs().Chmod("secret", 0600));
  ASSERT_OK(fs().Truncate("sub/secret", 4));
  ASSERT_OK(fs().Rename("sub/secret", "secret", 0));
  EXPECT_EQ(St("secret").st_size, 4);
  EXPECT_EQ(Refusals(), vector<string>{});
  ExpectUnread("secret");
}

TEST_P(ReadRuleTest, AFileOfTheBaseStaysUnreadWhereverItIs) {
  ASSERT_OK(unread().Rename("secret", "moved", 0));
  ASSERT_OK(fs().Link("sub/secret", "hard"));
  // No process has looked up the other name.
  ExpectUnread("linked");
  ASSERT_OK(fs().Rename("vault", "open", 0));
  ExpectUnread("moved");
  ExpectUnread("hard");
  ExpectUnread("open/a/b");
  ExpectUnread("linked");
  ExpectUnread("open/linked");
  ASSERT_OK(fs().Unlink("open/linked"));
  ExpectUnread("linked");
  ASSERT_OK(fs().AppendFile("moved", "more"));
  ExpectUnread("moved");
}

TEST_P(ReadRuleTest, AFreeFileAtTheNameIsUnread) {
  ASSERT_OK(unread().Rename("free", "vault/free", 0));
  ExpectUnread("vault/free");
  ASSERT_OK(fs().Rename("vault/free", "free", 0));
  EXPECT_EQ(Content("free"), "free");
}

TEST_P(ReadRuleTest, WhatATransactionMadeIsOnlyReadByItsDescriptor) {
  const auto made = unread().Open("vault/made", O_CREAT | O_RDWR, 0644);
  ASSERT_OK(made);
  ASSERT_OK(fs().WriteAt(*made, 0, "made"));
  EXPECT_EQ(fs().ReadAt(*made, 0, 10).value_or("?"), "made");
  ASSERT_OK(fs().Close(*made));
  ExpectUnread("vault/made");
  // A rule about what was there before is not about this one.
  ASSERT_OK(fs().Unlink("had"));
  ASSERT_OK(fs().WriteFile("had", "new"));
  EXPECT_EQ(Content("had"), "new");
}

TEST_P(ReadRuleTest, ARuleHoldsAfterARemount) {
  ExpectUnread("secret");
  ASSERT_OK(fs().AppendFile("secret", "more"));
  ASSERT_OK(fs().Remount());
  ASSERT_OK(fs().UsePolicy(kUnread));
  ExpectUnread("secret");
  EXPECT_EQ(Refusals(), vector<string>{"read secret EACCES by unread, 4"});
}

/// The same with real system calls.
class ReadRuleKernelTest : public ReadRuleTest {
 protected:
  void SetUp() override {
    if (GetParam().plain) GTEST_SKIP() << "has no rules";
  }
  void TearDown() override {
    if (!GetParam().plain) ReadRuleTest::TearDown();
  }
  string At(const string& path) { return fs().mountpoint() + "/" + path; }
};
FOR_DRIVERS(ReadRuleKernelTest, Needs::kKernel);

TEST_P(ReadRuleKernelTest, ThePageCacheServesNothing) {
  // Without the rule it is read and mapped: the kernel has its pages.
  EXPECT_EQ(Content("secret"), "secret");
  const UniqueFd before(open(At("secret").c_str(), O_RDWR | O_CLOEXEC));
  const Mapping mapping(before.get(), 6, MAP_SHARED);
  ASSERT_TRUE(mapping.valid());
  EXPECT_EQ(string(mapping.data(), 6), "secret");
  ExpectUnread("secret");
  const UniqueFd path(open(At("secret").c_str(), O_PATH | O_CLOEXEC));
  ASSERT_TRUE(path.valid());
  const string again = "/proc/self/fd/" + std::to_string(path.get());
  EXPECT_EQ(open(again.c_str(), O_RDONLY | O_CLOEXEC), -1);
  EXPECT_EQ(errno, EACCES);
}

TEST_P(ReadRuleKernelTest, AFileThatIsOpenForWritingIsNotMapped) {
  ExpectUnread("secret");
  const UniqueFd writing(open(At("secret").c_str(), O_WRONLY | O_CLOEXEC));
  ASSERT_TRUE(writing.valid());
  // Even a mapping for writing needs a descriptor for reading.
  EXPECT_EQ(
      mmap(nullptr, 6, PROT_READ | PROT_WRITE, MAP_SHARED, writing.get(), 0),
      MAP_FAILED);
  EXPECT_EQ(errno, EACCES);
  char byte = 0;
  EXPECT_EQ(pread(writing.get(), &byte, 1, 0), -1);
}

TEST_P(ReadRuleKernelTest, AProgramIsNotExecuted) {
  base().File("vault/tool", "#!/bin/sh\nexit 0\n", 0755);
  base().File("free-tool", "#!/bin/sh\nexit 0\n", 0755);
  unread();
  const auto spawn = [&](const string& path) {
    string program = At(path);
    char* const arguments[] = {program.data(), nullptr};
    pid_t child = 0;
    const int error = posix_spawn(&child, program.c_str(), nullptr, nullptr,
                                  arguments, environ);
    if (error == 0) waitpid(child, nullptr, 0);
    return ErrnoName(error);
  };
  EXPECT_EQ(spawn("free-tool"), "OK");
  EXPECT_EQ(spawn("vault/tool"), "EACCES");
  EXPECT_EQ(Refusals(), vector<string>{"read vault/tool EACCES by unread, 1"});
}

}  // namespace
}  // namespace txfs::testing

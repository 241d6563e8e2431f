// Many names of a directory, looked up at once.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

class LookupAllTest : public ::testing::Test {
 protected:
  LookupAllTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    for (const char* name : {"d/file", "d/changed", "d/gone", "d/sub/file"}) {
      base_.File(name, name);
    }
    base_.Symlink("file", "d/link");
    auto started = CoreDriver::Start(base_.root(), {});
    if (!started) ADD_FAILURE() << started.error().ToString();
    if (started) driver_ = std::move(*started);
  }

  Filesystem& filesystem() { return driver_->workspace().filesystem(); }
  Ino Directory(std::string_view name) {
    const auto node = filesystem().Lookup(kRootIno, name);
    EXPECT_OK(node);
    return node ? node->ino : kNoIno;
  }
  Result<struct stat> Stat(const std::string& path) {
    return driver_->Stat(path);
  }

  const TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(LookupAllTest, FindsWhatLookupFindsInTheSameOrder) {
  ASSERT_OK(driver_->WriteFile("d/changed", "by the transaction"));
  ASSERT_OK(driver_->WriteFile("d/new", ""));
  ASSERT_OK(driver_->Unlink("d/gone"));
  const Ino directory = Directory("d");
  const std::vector<std::string_view> names{"new", "absent", "link",    "gone",
                                            "sub", "file",   "changed", "new"};
  const auto nodes = filesystem().LookupAll(directory, names);
  ASSERT_EQ(nodes.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    SCOPED_TRACE(names[i]);
    const auto alone = filesystem().Lookup(directory, names[i]);
    ASSERT_EQ(nodes[i].has_value(), alone.has_value());
    if (!alone) {
      EXPECT_EQ(nodes[i].error().code, ENOENT);
      continue;
    }
    EXPECT_EQ(nodes[i]->ino, alone->ino);
    EXPECT_EQ(nodes[i]->st.st_mode, alone->st.st_mode);
    EXPECT_EQ(nodes[i]->st.st_size, alone->st.st_size);
    filesystem().Forget(alone->ino, 2);
  }
}

TEST_F(LookupAllTest, OnceKnownAllAreFoundAgain) {
  const Ino directory = Directory("d");
  const std::vector<std::string_view> names{"file", "changed", "sub"};
  const auto before = filesystem().LookupAll(directory, names);
  const auto after = filesystem().LookupAll(directory, names);
  for (size_t i = 0; i < names.size(); ++i) {
    ASSERT_OK(before[i]);
    ASSERT_OK(after[i]);
    EXPECT_EQ(before[i]->ino, after[i]->ino);
  }
}

TEST_F(LookupAllTest, WhatIsExpectedIsNotShownAfterItChanged) {
  const Ino directory = Directory("d");
  const std::vector<std::string_view> names{"changed", "file", "gone", "later"};
  filesystem().ExpectLookups(directory, names);
  ASSERT_OK(driver_->WriteFile("d/changed", "by the transaction"));
  ASSERT_OK(driver_->Unlink("d/gone"));
  base_.File("d/file", "by another program");
  base_.File("d/later", "new");
  ASSERT_OK(driver_->workspace().Refresh());
  const auto nodes = filesystem().LookupAll(directory, names);
  ASSERT_OK(nodes[0]);
  EXPECT_EQ(nodes[0]->st.st_size, 18);
  ASSERT_OK(nodes[1]);
  EXPECT_EQ(nodes[1]->st.st_size, 18);
  EXPECT_ERRNO(nodes[2], ENOENT);
  ASSERT_OK(nodes[3]);
  EXPECT_EQ(nodes[3]->st.st_size, 3);
}

TEST_F(LookupAllTest, ExpectedNamesAreFoundAsOthersAre) {
  const Ino directory = Directory("d");
  const std::vector<std::string_view> names{"absent", "changed", "link", "sub"};
  filesystem().ExpectLookups(directory, names);
  const auto nodes = filesystem().LookupAll(directory, names);
  EXPECT_ERRNO(nodes[0], ENOENT);
  for (size_t i = 1; i < names.size(); ++i) {
    SCOPED_TRACE(names[i]);
    ASSERT_OK(nodes[i]);
    struct stat st{};
    ASSERT_EQ(
        ::lstat((base_.root() + "/d/" + std::string(names[i])).c_str(), &st),
        0);
    EXPECT_EQ(nodes[i]->st.st_ino, st.st_ino);
    EXPECT_EQ(nodes[i]->st.st_mode, st.st_mode);
  }
}

TEST_F(LookupAllTest, InAFileEachNameFails) {
  const auto file = filesystem().Lookup(Directory("d"), "file");
  ASSERT_OK(file);
  const std::vector<std::string_view> names{"a", "b"};
  for (const auto& node : filesystem().LookupAll(file->ino, names)) {
    EXPECT_ERRNO(node, ENOTDIR);
  }
}

}  // namespace
}  // namespace txfs::testing

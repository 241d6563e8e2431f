#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "fs/posix/synthetic_directory.h"
#include "fs/workspace/workspace.h"
#include "tests/conformance/temp_dir.h"

namespace txfs::testing {
namespace {

using std::string;

/// A workspace with files that tell how often they were asked for.
class SyntheticDirectoryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    base_.File("file", "text");
    WorkspaceOptions options;
    options.path = directory_.path();
    options.store = options.path + "/.txfs";
    options.filesystem.exe_of = [](uint32_t) { return string("/test"); };
    auto opened = Workspace::Open(options);
    ASSERT_TRUE(opened) << opened.error().ToString();
    workspace_ = std::move(*opened);
    fs_ = std::make_unique<SyntheticDirectory>(
        workspace_->filesystem(), ".txfs",
        std::vector<SyntheticFile>{
            {.name = "count",
             .content = [this] { return "asked " + std::to_string(++asked_); }},
            {.name = "empty", .content = [] { return string(); }},
            {.name = "private",
             .content = [this] { return "made " + std::to_string(++asked_); },
             .version = [this] { return version_; },
             .is_private = true}});
  }

  Node Find(Ino parent, const string& name) {
    const auto node = fs_->Lookup(parent, name);
    EXPECT_TRUE(node) << name << ": " << node.error().ToString();
    return node ? *node : Node{};
  }
  Ino Directory() { return Find(kRootIno, ".txfs").ino; }
  Result<string> Read(Ino ino, uint64_t offset = 0) {
    std::array<char, 64> text{};
    const size_t size =
        TRY(fs_->Read(ino, offset, std::as_writable_bytes(std::span(text))));
    return string(text.data(), size);
  }
  std::vector<string> Names(Ino directory, uint64_t cookie = 2) {
    std::vector<string> names;
    EXPECT_TRUE(
        fs_->ReadDirectory(directory, cookie, [&](const DirEntry& entry) {
          names.push_back(entry.name);
          return true;
        }));
    return names;
  }

  TempDir directory_;
  BaseTree base_{directory_.path()};
  int asked_ = 0;
  string version_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<SyntheticDirectory> fs_;
};

TEST_F(SyntheticDirectoryTest, IsFoundByNameAndListedNowhere) {
  EXPECT_EQ(Names(kRootIno), std::vector<string>{"file"});
  const Node directory = Find(kRootIno, ".txfs");
  EXPECT_TRUE(S_ISDIR(directory.st.st_mode));
  EXPECT_EQ(directory.st.st_mode & 07777, 0555U);
  EXPECT_EQ(Names(directory.ino),
            (std::vector<string>{"count", "empty", "private"}));
  EXPECT_EQ(Names(directory.ino, 4), std::vector<string>{"private"});
  EXPECT_EQ(fs_->Lookup(directory.ino, "none").error().code, ENOENT);
  EXPECT_EQ(fs_->Lookup(directory.ino, "FORMAT").error().code, ENOENT);
}

TEST_F(SyntheticDirectoryTest, AFileStaysWhatItWasAtItsLookup) {
  const Ino directory = Directory();
  const Node first = Find(directory, "count"),
             second = Find(directory, "count");
  EXPECT_NE(first.ino, second.ino);
  EXPECT_TRUE(first.fleeting);
  EXPECT_EQ(first.st.st_ino, second.st.st_ino);
  EXPECT_EQ(first.st.st_size, 7);
  EXPECT_EQ(first.st.st_mode, S_IFREG | 0444U);
  EXPECT_EQ(Read(first.ino).value(), "asked 1");
  EXPECT_EQ(Read(second.ino).value(), "asked 2");
  EXPECT_EQ(Read(first.ino, 6).value(), "1");
  EXPECT_EQ(Read(first.ino, 7).value(), "");
  EXPECT_EQ(fs_->GetAttr(first.ino)->st_size, 7);
  EXPECT_EQ(fs_->Seek(first.ino, 3, SEEK_DATA).value(), 3U);
  EXPECT_EQ(fs_->Seek(first.ino, 3, SEEK_HOLE).value(), 7U);
  EXPECT_EQ(fs_->Seek(Find(directory, "empty").ino, 0, SEEK_DATA).error().code,
            ENXIO);
}

TEST_F(SyntheticDirectoryTest, IsForgottenWithItsLastLookup) {
  const Node node = Find(Directory(), "count");
  fs_->Forget(node.ino, 1);
  EXPECT_EQ(fs_->GetAttr(node.ino).error().code, ESTALE);
  EXPECT_EQ(Read(node.ino).error().code, ESTALE);
}

TEST_F(SyntheticDirectoryTest, ManyTakeNoMoreMemoryThanTheBound) {
  SyntheticDirectory big(
      workspace_->filesystem(), ".txfs",
      {{.name = "big", .content = [] { return string(20 << 20, 'x'); }}});
  const Ino directory = big.Lookup(kRootIno, ".txfs")->ino;
  std::vector<Ino> held;
  for (int i = 0; i < 3; ++i) {
    const auto node = big.Lookup(directory, "big");
    ASSERT_TRUE(node);
    held.push_back(node->ino);
  }
  EXPECT_EQ(big.Lookup(directory, "big").error().code, ENFILE);
  big.Forget(held[0], 1);
  EXPECT_TRUE(big.Lookup(directory, "big"));
}

TEST_F(SyntheticDirectoryTest, WhatIsTheSameIsMadeAndHeldOnce) {
  const Ino directory = Directory();
  const Ino first = Find(directory, "private").ino;
  const Ino second = Find(directory, "private").ino;
  version_ = "another";
  const Ino third = Find(directory, "private").ino;
  fs_->Forget(first, 1);
  EXPECT_EQ(Read(second).value(), "made 1");
  EXPECT_EQ(Read(third).value(), "made 2");

  SyntheticDirectory big(workspace_->filesystem(), ".txfs",
                         {{.name = "big",
                           .content = [] { return string(20 << 20, 'x'); },
                           .version = [] { return string(); }}});
  const Ino in_big = big.Lookup(kRootIno, ".txfs")->ino;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(big.Lookup(in_big, "big"));
}

TEST_F(SyntheticDirectoryTest, APrivateFileIsForTheUserOfTheProcess) {
  ASSERT_EQ(::chown(directory_.path().c_str(), 12345, 12345), 0);
  const Node is_private = Find(Directory(), "private");
  EXPECT_EQ(is_private.st.st_mode & 07777, 0400U);
  EXPECT_EQ(is_private.st.st_uid, ::geteuid());
  EXPECT_EQ(Find(Directory(), "count").st.st_mode & 07777, 0444U);
}

TEST_F(SyntheticDirectoryTest, NothingInItCanBeChanged) {
  const Ino directory = Directory(), file = Find(kRootIno, "file").ino;
  const Ino count = Find(directory, "count").ino;
  const Caller root;
  const auto is_read_only = [](const auto& result) {
    return !result && result.error().code == EROFS;
  };
  const std::pair<Ino, string> places[] = {
      {kRootIno, ".txfs"}, {directory, "count"}, {directory, "new"}};
  for (const auto& [parent, name] : places) {
    SCOPED_TRACE(name);
    EXPECT_TRUE(is_read_only(fs_->Create(root, parent, name, 0644)));
    EXPECT_TRUE(is_read_only(fs_->MakeNode(root, parent, name, 0644, 0)));
    EXPECT_TRUE(is_read_only(fs_->MakeDirectory(root, parent, name, 0755)));
    EXPECT_TRUE(is_read_only(fs_->MakeSymlink(root, parent, name, "x")));
    EXPECT_TRUE(is_read_only(fs_->Link(root, file, parent, name)));
    EXPECT_TRUE(is_read_only(fs_->Unlink(root, parent, name)));
    EXPECT_TRUE(is_read_only(fs_->RemoveDirectory(root, parent, name)));
    for (const RenameMode mode : {RenameMode::kReplace, RenameMode::kNoReplace,
                                  RenameMode::kExchange}) {
      EXPECT_TRUE(is_read_only(
          fs_->Rename(root, kRootIno, "file", parent, name, mode)));
      EXPECT_TRUE(is_read_only(
          fs_->Rename(root, parent, name, kRootIno, "file", mode)));
    }
  }
  EXPECT_TRUE(is_read_only(fs_->Link(root, count, kRootIno, "link")));
  EXPECT_TRUE(is_read_only(fs_->SetAttr(root, count, {.size = 0})));
  EXPECT_TRUE(is_read_only(fs_->SetAttr(root, directory, {.mode = 0777})));
  EXPECT_TRUE(is_read_only(fs_->SetXattr(root, count, "user.a", "b", {})));
  EXPECT_TRUE(is_read_only(fs_->RemoveXattr(root, count, "user.a")));
  EXPECT_TRUE(is_read_only(fs_->Write(root, count, 0, AsBytes("x"), {})));
  EXPECT_TRUE(
      is_read_only(fs_->Allocate(root, count, 0, 1, AllocateMode::kReserve)));
  EXPECT_TRUE(is_read_only(fs_->CopyRange(root, file, 0, count, 0, 1)));
  EXPECT_EQ(fs_->CopyRange(root, count, 0, file, 0, 1).error().code, EXDEV);
  EXPECT_EQ(Read(count).value(), "asked 1");
  EXPECT_EQ(Read(file).value(), "text");
  EXPECT_EQ(workspace_->Changes(false, {})->size(), 0U);
}

}  // namespace
}  // namespace txfs::testing

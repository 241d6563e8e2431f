// What stands below a store in the place of its files.

#include "journal/support/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "journal/file_lock.h"
#include "tests/journal/fixture.h"

namespace txfs {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    fs::create_directories(outside_ + "/d");
    std::ofstream(outside_ + "/f") << "precious";
    std::ofstream(outside_ + "/d/f") << "precious";
    fs::create_directory(store_);
    dir_ = *OpenAt(AT_FDCWD, store_, O_RDONLY | O_DIRECTORY);
  }

  [[nodiscard]] int dir() const { return dir_.get(); }
  [[nodiscard]] std::string In(const std::string& name) const {
    return store_ + "/" + name;
  }
  void ExpectOutsideUntouched() const {
    for (const char* file : {"/f", "/d/f"}) {
      std::ifstream in(outside_ + file);
      EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}),
                "precious");
    }
    EXPECT_EQ(std::distance(fs::directory_iterator(outside_), {}), 2);
    EXPECT_EQ(std::distance(fs::directory_iterator(outside_ + "/d"), {}), 1);
  }

  TempDir temp_;
  const std::string outside_ = temp_.path() + "/outside";
  const std::string store_ = temp_.path() + "/store";
  UniqueFd dir_;
};

TEST_F(FileTest, NoLinkInTheMiddleIsFollowed) {
  fs::create_symlink(outside_ + "/d", In("d"));
  fs::create_symlink(outside_, In("above"));
  const std::vector<std::function<bool()>> calls = {
      [&] { return ReadWholeFile(dir(), "d/f").has_value(); },
      [&] { return ReplaceFile(dir(), "d/f", "x").has_value(); },
      [&] { return PutFile(dir(), "d/new", "x").has_value(); },
      [&] { return MakeRoomFor(dir(), "d/f", 4096).has_value(); },
      [&] { return MakeDirectoryAt(dir(), "d/sub", 0700).has_value(); },
      [&] { return ListNames(dir(), "d").has_value(); },
      [&] { return RemoveTree(dir(), "d/f").has_value(); },
      [&] { return RemoveTree(dir(), "above/d").has_value(); },
      [&] { return RenameBelow(dir(), "d/f", "f").has_value(); },
      [&] { return Exists(dir(), "d/f").has_value(); },
      [&] { return SyncDirectory(dir(), "d").has_value(); },
      [&] { return FileLock::Take(dir(), "d/lock", 0).has_value(); },
      [&] { return OpenDirectoryBelow(dir(), "above/d").has_value(); },
      [&] {
        return OpenFileBelow(dir(), "../outside/f", O_RDONLY).has_value();
      },
      [&] {
        return OpenFileBelow(dir(), outside_ + "/f", O_RDONLY).has_value();
      },
      [&] { return OpenDirectoryBelow(dir(), "..").has_value(); }};
  for (size_t i = 0; i < calls.size(); ++i) EXPECT_FALSE(calls[i]()) << i;
  ExpectOutsideUntouched();
}

TEST_F(FileTest, WhatIsNoRegularFileIsNotWaitedFor) {
  fs::create_symlink(outside_ + "/f", In("link"));
  ASSERT_EQ(mkfifo(In("pipe").c_str(), 0600), 0);
  fs::create_directory(In("directory"));
  for (const char* name : {"link", "pipe", "directory"}) {
    EXPECT_ERRNO(ReadWholeFile(dir(), name), EBADMSG);
    EXPECT_ERRNO(OpenFileBelow(dir(), name, O_RDWR | O_CREAT, 0600), EBADMSG);
    EXPECT_ERRNO(FileLock::Take(dir(), name, 0), EBADMSG);
  }
  EXPECT_ERRNO(OpenDirectoryBelow(dir(), "link"), ENOTDIR);
  EXPECT_ERRNO(ListNames(dir(), "pipe"), ENOTDIR);
  ExpectOutsideUntouched();
}

TEST_F(FileTest, ATemporaryFileIsNotWrittenToWhenItIsSomethingElse) {
  const auto plant = [&](int kind) {
    if (kind == 0) fs::create_symlink(outside_ + "/f", In("a.new"));
    if (kind == 1) fs::create_hard_link(outside_ + "/f", In("a.new"));
    if (kind == 2) {
      ASSERT_EQ(mkfifo(In("a.new").c_str(), 0600), 0);
    }
  };
  for (int kind = 0; kind < 3; ++kind) {
    plant(kind);
    EXPECT_OK(MakeRoomFor(dir(), "a", 4096));
    EXPECT_OK(PutFile(dir(), "a", "x"));
    plant(kind);
    EXPECT_OK(PutFile(dir(), "a", "content"));
    EXPECT_EQ(*ReadWholeFile(dir(), "a"), "content");
    ExpectOutsideUntouched();
  }
}

TEST_F(FileTest, RoomThatWasMadeIsUsed) {
  EXPECT_OK(MakeRoomFor(dir(), "a", 1 << 20));
  struct stat room{};
  ASSERT_EQ(stat(In("a.new").c_str(), &room), 0);
  EXPECT_OK(PutFile(dir(), "a", "content"));
  struct stat file{};
  ASSERT_EQ(stat(In("a").c_str(), &file), 0);
  EXPECT_EQ(file.st_ino, room.st_ino);
}

TEST_F(FileTest, AFileOfOtherNamesIsNotWrittenTo) {
  fs::create_hard_link(outside_ + "/f", In("lock"));
  EXPECT_ERRNO(FileLock::Take(dir(), "lock", 0), EBADMSG);
  EXPECT_ERRNO(OpenOwnFileBelow(dir(), "lock", O_WRONLY | O_TRUNC), EBADMSG);
  fs::remove(In("lock"));
  ExpectOutsideUntouched();
}

TEST_F(FileTest, NothingThatCostsNothingTakesMemory) {
  std::ofstream(In("hollow")).close();
  fs::resize_file(In("hollow"), uint64_t{1} << 29);
  EXPECT_ERRNO(ReadWholeFile(dir(), "hollow", size_t{1} << 30), EFBIG);
}

}  // namespace
}  // namespace txfs

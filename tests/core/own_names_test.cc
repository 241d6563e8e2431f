#include "fs/tree/own_names.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <string>

#include "journal/support/case_folding.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

using ::std::string;

TEST(OwnNamesTest, TellsWhatANameIs) {
  struct Case {
    const char* name;
    NameKind kind;
  };
  constexpr Case kCases[] = {
      {".txfs", NameKind::kOwn},
      {".txfs-vault", NameKind::kOwn},
      {".txfs-vault-00ff", NameKind::kOwn},
      {".txfs-vaults", NameKind::kOwn},
      {".TXFS", NameKind::kFolded},
      {".Txfs-VAULT-1", NameKind::kFolded},
      {".txf\xc5\xbf", NameKind::kFolded},
      {".tx\xe2\x80\x8d"
       "fs",
       NameKind::kFolded},
      {"\xef\xbb\xbf.txfs", NameKind::kFolded},
      {".txfs.", NameKind::kFolded},
      {".txfs ", NameKind::kFolded},
      {".txfs::$INDEX_ALLOCATION", NameKind::kFolded},
      {"TXFS~1", NameKind::kFolded},
      {"txfs-v~2", NameKind::kFolded},
      {"TXA1B2~3", NameKind::kFolded},
      {"", NameKind::kPlain},
      {"a", NameKind::kPlain},
      {"txfs", NameKind::kPlain},
      {".txfs2", NameKind::kPlain},
      {".txfs-v", NameKind::kPlain},
      {".txfs.toml", NameKind::kPlain},
      {"x.txfs", NameKind::kPlain},
      {"tx~", NameKind::kPlain},
      {"tx~1.c", NameKind::kPlain},
      {"txt-file~1", NameKind::kPlain},
      {"\xff.txfs", NameKind::kPlain},
      {".txf\xc5", NameKind::kPlain},
  };
  for (const Case& one : kCases) {
    EXPECT_EQ(KindOfName(one.name), one.kind) << one.name;
  }
}

TEST(OwnNamesTest, FoldsWhereItIsNotKnown) {
  const auto proc = OpenAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(proc);
  EXPECT_TRUE(FoldsCase(proc->get()));
  EXPECT_TRUE(FoldsCase(-1));
  const auto memory = OpenAt(AT_FDCWD, "/dev/shm", O_RDONLY | O_DIRECTORY);
  if (memory) {
    EXPECT_FALSE(FoldsCase(memory->get()));
  }
}

TEST(OwnNamesTest, ListsNamesByteForByte) {
  const auto proc = OpenAt(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(proc);
  EXPECT_TRUE(ListsName(proc->get(), "meminfo").value_or(false));
  EXPECT_FALSE(ListsName(proc->get(), "MemInfo").value_or(true));
}

}  // namespace
}  // namespace txfs

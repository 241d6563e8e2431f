#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "fs/commit/committer.h"
#include "fs/tree/check_tree.h"
#include "fs/vault/vault_sums.h"
#include "fs/workspace/workspace.h"
#include "journal/check_store.h"
#include "journal/store.h"
#include "journal/support/checksum.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/steps.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;
using ::std::vector;

/// A workspace with the core over it and a base that steps know.
class Bench {
 public:
  explicit Bench(const CoreOptions& options) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto started = CoreDriver::Start(base_.root(), options);
    RC_ASSERT(started.has_value());
    driver_ = std::move(*started);
    runner_ = std::make_unique<StepRunner>(*driver_);
  }

  void Run(const vector<Step>& steps) {
    for (const Step& step : steps) runner_->Run(step);
    DemandSound("with the journal open");
  }
  void Settle() {
    RC_ASSERT(driver_->Settle().has_value());
    DemandSound("drained");
  }
  void Remount() {
    runner_->DropAll();
    RC_ASSERT(driver_->Remount().has_value());
    DemandSound("opened again");
  }
  void Commit() {
    RC_ASSERT(driver_->Commit().has_value());
    DemandSound("after a commit");
  }
  void Close() {
    runner_->DropAll();
    driver_.reset();
    DemandSound("closed");
  }

 private:
  void DemandSound(const string& when) {
    const string problems = FindProblems(base_.root());
    if (!problems.empty()) RC_LOG() << when << ":\n" << problems;
    RC_ASSERT(problems.empty());
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<StepRunner> runner_;
};

TEST(CheckTest, FindsNothingWhereNothingIsWrong) {
  SetCases(Scaled(20), 120);
  const auto steps =
      rc::gen::container<vector<Step>>(AnyStep(StepModes(false)));
  EXPECT_TRUE(rc::check("steps, remount, steps, commit, steps, close", [&] {
    const bool drains = *rc::gen::arbitrary<bool>();
    Bench bench({.journal = {.background_drain = drains},
                 .keep_lookups = *rc::gen::arbitrary<bool>()});
    bench.Run(*steps);
    bench.Settle();
    bench.Remount();
    bench.Run(*steps);
    bench.Commit();
    bench.Run(*steps);
    bench.Close();
  }));
}

// --- the rules of a tree, broken one by one --------------------------------

constexpr Ino kDir{2};
constexpr Ino kFile{3};
constexpr Ino kBaseDir{4};
constexpr Ino kBaseFile{5};
constexpr Ino kLink{6};

/// A small sound tree:
///   d/           new
///   d/f          new, 10 bytes, also d/g
///   d/l          new symlink
///   b/           of the base, with the base's name "gone" hidden
///   b/f          of the base, attributes changed
class TreeCheckTest : public ::testing::Test {
 protected:
  TreeCheckTest() {
    image_.inodes[kRootIno] = Base("", FileType::kDirectory, 3);
    image_.inodes[kRootIno].attr.nlink = 4;
    image_.inodes[kDir].attr = {.type = FileType::kDirectory, .nlink = 2};
    image_.inodes[kFile].attr = {
        .xattrs_owned = true, .nlink = 2, .size = 10, .own_segment = 1};
    image_.inodes[kBaseDir] = Base("b", FileType::kDirectory, 2);
    image_.inodes[kBaseFile] = Base("b/f", FileType::kRegular, 1);
    image_.inodes[kLink].attr = {
        .type = FileType::kSymlink, .nlink = 1, .size = 3};
    image_.inodes[kLink].symlink = "d/f";
    image_.dentries[{kRootIno, "d"}] = {DentryKind::kInode, kDir};
    image_.dentries[{kDir, "f"}] = {DentryKind::kInode, kFile};
    image_.dentries[{kDir, "g"}] = {DentryKind::kInode, kFile};
    image_.dentries[{kDir, "l"}] = {DentryKind::kInode, kLink};
    image_.dentries[{kBaseDir, "gone"}] = {DentryKind::kWhiteout, kNoIno};
    image_.extents[{kFile, 0}] = {0, 6, {1, 6, 0, 0, 0}};
    image_.extents[{kFile, 6}] = {6, 4, {}};
    image_.xattrs[{kFile, "user.x"}] = "y";
  }

  static InodeRecord Base(const string& path, FileType type, uint32_t nlink) {
    InodeRecord record;
    record.attr = {.type = type, .nlink = nlink, .size = 100};
    if (type == FileType::kRegular) record.attr.base_limit = 100;
    record.base = BaseOrigin{.path = path,
                             .ino = 77,
                             .size = 100,
                             .mode = ModeBits(type),
                             .nlink = nlink};
    return record;
  }

  std::set<string> Check() {
    CheckReport report;
    CheckTree(image_, nullptr, Findings(report, "db"));
    std::set<string> kinds;
    for (const Problem& problem : report.problems) kinds.insert(problem.kind);
    return kinds;
  }

  Image image_;
};

TEST_F(TreeCheckTest, FindsNothingWrongWithASoundTree) {
  EXPECT_EQ(Check(), std::set<string>{});
}

TEST_F(TreeCheckTest, NamesEveryBrokenRule) {
  struct Damage {
    string what;
    std::function<void(Image&)> break_it;
    std::set<string> kinds;
  };
  const vector<Damage> damages = {
      {"a name leads to no record",
       [](Image& i) {
         i.dentries[{kDir, "x"}] = {DentryKind::kInode, Ino{99}};
       },
       {"tree.dentry"}},
      {"a name in no known directory",
       [](Image& i) {
         i.dentries[{Ino{98}, "x"}] = {DentryKind::kInode, kFile};
         i.inodes[kFile].attr.nlink = 3;
       },
       {"tree.dentry"}},
      {"a name in a file",
       [](Image& i) {
         i.dentries[{kFile, "x"}] = {DentryKind::kWhiteout, kNoIno};
       },
       {"tree.dentry"}},
      {"a whiteout in a new directory",
       [](Image& i) {
         i.dentries[{kDir, "x"}] = {DentryKind::kWhiteout, kNoIno};
       },
       {"tree.dentry"}},
      {"a whiteout with an inode",
       [](Image& i) { i.dentries[{kBaseDir, "gone"}].ino = kFile; },
       {"tree.dentry"}},
      {"a name with a slash",
       [](Image& i) {
         i.dentries[{kBaseDir, "a/b"}] = {DentryKind::kWhiteout, kNoIno};
       },
       {"tree.dentry"}},
      {"a name that is dots",
       [](Image& i) {
         i.dentries[{kBaseDir, ".."}] = {DentryKind::kWhiteout, kNoIno};
       },
       {"tree.dentry"}},
      {"a name leads to the root",
       [](Image& i) {
         i.dentries[{kDir, "x"}] = {DentryKind::kInode, kRootIno};
         ++i.inodes[kDir].attr.nlink;
       },
       {"tree.dentry"}},
      {"a name in a deleted directory",
       [](Image& i) {
         i.inodes[kBaseDir].attr.nlink = 0;
         i.dentries[{kRootIno, "b"}] = {DentryKind::kWhiteout, kNoIno};
         i.inodes[kBaseFile].attr.nlink = 0;
         i.dentries[{kBaseDir, "x"}] = {DentryKind::kInode, kFile};
         i.inodes[kFile].attr.nlink = 3;
       },
       {"tree.dentry"}},
      {"too many links of a new file",
       [](Image& i) { i.inodes[kFile].attr.nlink = 3; },
       {"tree.nlink"}},
      {"too few links of a new file",
       [](Image& i) { i.inodes[kFile].attr.nlink = 1; },
       {"tree.nlink"}},
      {"links of a new directory",
       [](Image& i) { i.inodes[kDir].attr.nlink = 3; },
       {"tree.nlink"}},
      {"more links of a base file than it ever had",
       [](Image& i) { i.inodes[kBaseFile].attr.nlink = 2; },
       {"tree.nlink"}},
      {"a new inode without links",
       [](Image& i) {
         i.inodes[kLink].attr.nlink = 0;
         i.dentries.erase({kDir, "l"});
       },
       {"tree.nlink"}},
      {"a deleted base file with a name",
       [](Image& i) {
         i.inodes[kBaseFile].attr.nlink = 0;
         i.dentries[{kDir, "x"}] = {DentryKind::kInode, kBaseFile};
       },
       {"tree.nlink"}},
      {"a directory with two names",
       [](Image& i) {
         i.dentries[{kRootIno, "e"}] = {DentryKind::kInode, kDir};
         ++i.inodes[kRootIno].attr.nlink;
       },
       {"tree.directory"}},
      {"directories inside each other",
       [](Image& i) {
         const Attr attr{.type = FileType::kDirectory, .nlink = 3};
         i.inodes[Ino{50}].attr = i.inodes[Ino{51}].attr = attr;
         i.dentries[{Ino{50}, "x"}] = {DentryKind::kInode, Ino{51}};
         i.dentries[{Ino{51}, "x"}] = {DentryKind::kInode, Ino{50}};
       },
       {"tree.directory"}},
      {"a directory without a name",
       [](Image& i) {
         i.inodes[Ino{50}].attr = {.type = FileType::kDirectory, .nlink = 2};
       },
       {"tree.unreachable"}},
      {"a base file below a hidden directory",
       [](Image& i) {
         i.dentries[{kRootIno, "b"}] = {DentryKind::kWhiteout, kNoIno};
         i.inodes[kBaseDir].attr.nlink = 0;
       },
       {"tree.unreachable"}},
      {"a base file whose name is hidden",
       [](Image& i) {
         i.dentries[{kBaseDir, "f"}] = {DentryKind::kWhiteout, kNoIno};
       },
       {"tree.unreachable"}},
      {"a symlink without a target",
       [](Image& i) { i.inodes[kLink].symlink.clear(); },
       {"tree.inode"}},
      {"a file with a symlink's target",
       [](Image& i) { i.inodes[kFile].symlink = "x"; },
       {"tree.inode"}},
      {"a mode with other bits",
       [](Image& i) { i.inodes[kFile].attr.mode = 0100644; },
       {"tree.inode"}},
      {"another type than in the base",
       [](Image& i) {
         i.inodes[kBaseFile].base->mode = ModeBits(FileType::kFifo);
       },
       {"tree.inode"}},
      {"content from a base that has none",
       [](Image& i) { i.inodes[kFile].attr.base_limit = 1; },
       {"tree.inode"}},
      {"content from behind the end of the base file",
       [](Image& i) { i.inodes[kBaseFile].attr.base_limit = 101; },
       {"tree.inode"}},
      {"a directory with a segment",
       [](Image& i) { i.inodes[kDir].attr.own_segment = 9; },
       {"tree.inode"}},
      {"one base directory twice",
       [](Image& i) { i.inodes[Ino{60}] = i.inodes[kBaseDir]; },
       {"tree.inode"}},
      {"content of no inode",
       [](Image& i) { i.extents[{Ino{99}, 0}] = {0, 1, {}}; },
       {"tree.extent"}},
      {"content of a directory",
       [](Image& i) { i.extents[{kDir, 0}] = {0, 1, {}}; },
       {"tree.extent"}},
      {"content behind the end",
       [](Image& i) { i.extents[{kFile, 6}].length = 5; },
       {"tree.extent"}},
      {"content twice",
       [](Image& i) { i.extents[{kFile, 0}].length = 7; },
       {"tree.extent"}},
      {"content of a deleted file",
       [](Image& i) {
         i.inodes[kBaseFile].attr.nlink = 0;
         i.dentries[{kBaseDir, "f"}] = {DentryKind::kWhiteout, kNoIno};
         i.extents[{kBaseFile, 0}] = {0, 1, {}};
       },
       {"tree.extent"}},
      {"an attribute of no inode",
       [](Image& i) { i.xattrs[{Ino{99}, "user.x"}] = ""; },
       {"tree.xattr"}},
      {"an attribute where the base's count",
       [](Image& i) { i.inodes[kFile].attr.xattrs_owned = false; },
       {"tree.xattr"}},
      {"an attribute of a deleted file",
       [](Image& i) {
         i.inodes[kBaseFile].attr.nlink = 0;
         i.inodes[kBaseFile].attr.xattrs_owned = true;
         i.dentries[{kBaseDir, "f"}] = {DentryKind::kWhiteout, kNoIno};
         i.xattrs[{kBaseFile, "user.x"}] = "";
       },
       {"tree.xattr"}},
  };
  const Image sound = image_;
  for (const Damage& damage : damages) {
    image_ = sound;
    damage.break_it(image_);
    EXPECT_EQ(Check(), damage.kinds) << damage.what;
  }
}

TEST(TreeCheckBaseTest, CountsTheLinksThatTheBaseHas) {
  const TempDir scratch;
  BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  base.File("a", "x");
  base.HardLink("a", "b");
  base.Directory("d/e");
  base.SetTimes();
  auto driver = CoreDriver::Start(base.root(), {});
  ASSERT_TRUE(driver.has_value());
  ASSERT_TRUE((*driver)->Unlink("a").has_value());
  ASSERT_TRUE((*driver)->Link("b", "d/c").has_value());
  ASSERT_TRUE((*driver)->Rename("d/e", "e", 0).has_value());
  ASSERT_TRUE((*driver)->Settle().has_value());
  driver->reset();
  EXPECT_EQ(FindProblems(base.root()), "");

  const auto store = OpenAt(AT_FDCWD, base.root() + "/.txfs", O_RDONLY);
  ASSERT_TRUE(store.has_value());
  CheckReport report;
  const auto ids = CheckLayout(store->get(), Findings(report, ""));
  ASSERT_TRUE(ids.has_value());
  const auto dir = OpenAt(store->get(), "txn/" + ids->open.front(), O_RDONLY);
  ASSERT_TRUE(dir.has_value());
  auto content = CheckJournal(dir->get(), Findings(report, ""));
  ASSERT_TRUE(content.has_value());
  ASSERT_TRUE(report.problems.empty());
  const BaseDirectory directory(
      *OpenAt(AT_FDCWD, base.root(), O_RDONLY | O_DIRECTORY));
  uint64_t counted = 0;
  for (auto& [ino, record] : content->image.inodes) {
    const uint32_t right = record.attr.nlink;
    for (const uint32_t wrong : {right - 1, right + 1}) {
      record.attr.nlink = wrong;
      CheckReport found;
      CheckTree(content->image, &directory, Findings(found, ""));
      EXPECT_FALSE(found.problems.empty()) << record.base->path << wrong;
      ++counted;
    }
    record.attr.nlink = right;
  }
  EXPECT_GE(counted, 8u);
}

TEST(CommitCheckTest, NamesDamageToWhatUndoNeeds) {
  const TempDir scratch;
  BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  base.File("a", "old");
  auto driver = CoreDriver::Start(base.root(), {});
  ASSERT_TRUE(driver.has_value());
  ASSERT_TRUE((*driver)->WriteFile("a", "new").has_value());
  ASSERT_TRUE((*driver)->Commit().has_value());
  driver->reset();
  ASSERT_EQ(FindProblems(base.root()), "");
  const string store = base.root() + "/.txfs";
  string plan;
  string image;
  for (const auto& entry :
       std::filesystem::directory_iterator(store + "/history")) {
    if (entry.path().extension() == ".plan") plan = entry.path();
    if (entry.path().extension() == ".image") image = entry.path();
  }
  const auto expect = [&](const string& kind) {
    const CheckReport report = CheckWorkspaceStore(base.root());
    ASSERT_EQ(report.problems.size(), 1u) << FindProblems(base.root());
    EXPECT_EQ(report.problems.front().kind, kind);
  };
  const string good_image = *ReadWholeFile(AT_FDCWD, image);
  std::ofstream(image) << good_image.substr(1);
  expect("commit.image");
  std::ofstream(image) << good_image;
  const string good_plan = *ReadWholeFile(AT_FDCWD, plan);
  std::ofstream(plan) << good_plan.substr(0, good_plan.size() - 1);
  expect("commit.plan");
  std::ofstream(store + "/intent") << good_plan.substr(0, 30);
  std::ofstream(plan) << good_plan;
  expect("commit.plan");
  std::filesystem::remove(store + "/intent");
  std::filesystem::rename(store + "/vault", store + "/trash/vault");
  expect("commit.vault");
  std::filesystem::rename(store + "/trash/vault", store + "/vault");
  EXPECT_EQ(FindProblems(base.root()), "");
}

/// Killed after its point of no return, and before it brought anything.
/// A commit that died right behind its point of no return.
class IntentCheckTest : public ::testing::Test {
 protected:
  IntentCheckTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    base_.File("f", "old");
    base_.SparseFile("large", 65 << 20);
    {
      auto driver = CoreDriver::Start(base_.root(), {});
      EXPECT_TRUE(driver.has_value());
      EXPECT_OK((*driver)->WriteFile("f", "new"));
      EXPECT_OK((*driver)->WriteFile("g", "new, too"));
      EXPECT_OK((*driver)->WriteFile("own", string(3 << 20, 'o')));
      EXPECT_OK((*driver)->Truncate("own", 5 << 20));
      EXPECT_OK((*driver)->PatchFile("large", 10, "patched"));
    }
    CommitUpToTheIntent();
    const string store = base_.root() + "/.txfs";
    const auto vault = *std::filesystem::directory_iterator(store + "/vault");
    for (const auto& file : std::filesystem::directory_iterator(vault)) {
      if (file.path().filename() == kSumsFile) {
        sums_ = file.path();
      } else {
        files_.push_back(file.path());
        ++kinds_[file.path().filename().string().front()];
      }
    }
  }

  /// Its process dies when the intent is there, and nothing of it was done:
  /// counted, crash points of other threads would come in between.
  void CommitUpToTheIntent() const {
    static string intent;
    intent = base_.root() + "/.txfs/intent";
    const pid_t pid = ::fork();
    ASSERT_GE(pid, 0);
    if (pid == 0) {
      SetCrashHook([] {
        if (::access(intent.c_str(), F_OK) == 0) ::_exit(0);
      });
      WorkspaceOptions options;
      options.path = base_.root();
      options.store = options.path + "/.txfs";
      auto workspace = Workspace::Open(options);
      if (workspace) std::ignore = (*workspace)->Commit({});
      ::_exit(1);
    }
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
  }

  void ExpectOneProblem(const string& about) {
    const CheckReport report = CheckWorkspaceStore(base_.root());
    EXPECT_EQ(report.problems.size(), 1u)
        << about << ": " << FindProblems(base_.root());
    if (report.problems.empty()) return;
    EXPECT_EQ(report.problems.front().kind, "commit.vault") << about;
  }

  TempDir scratch_;
  BaseTree base_;
  vector<std::filesystem::path> files_;
  std::filesystem::path sums_;
  std::map<char, int> kinds_;  ///< of the slots
};

TEST_F(IntentCheckTest, FindsThatWhatACommitIsToBringIsMissing) {
  EXPECT_EQ(FindProblems(base_.root()), "");
  for (const auto& file : files_) {
    const string away = scratch_.path() + "/away";
    std::filesystem::rename(file, away);
    ExpectOneProblem(file);
    std::filesystem::rename(away, file);
  }
  EXPECT_EQ(kinds_, (std::map<char, int>{{'n', 3}, {'o', 1}, {'p', 1}}));
  EXPECT_EQ(FindProblems(base_.root()), "");
}

/// Inverts a byte, and leaves the time of modification what it was.
void Flip(const string& path, off_t at) {
  const auto file = OpenAt(AT_FDCWD, path, O_RDWR);
  ASSERT_TRUE(file.has_value()) << path;
  struct stat st{};
  ASSERT_EQ(fstat(file->get(), &st), 0);
  char byte = 0;
  ASSERT_EQ(pread(file->get(), &byte, 1, at), 1) << path << " at " << at;
  byte = static_cast<char>(~byte);
  ASSERT_EQ(pwrite(file->get(), &byte, 1, at), 1);
  const timespec times[2] = {st.st_atim, st.st_mtim};
  ASSERT_EQ(futimens(file->get(), times), 0);
}

TEST_F(IntentCheckTest, FindsThatWhatACommitIsToBringHasOtherContent) {
  for (const auto& file : files_) {
    const auto size = static_cast<off_t>(std::filesystem::file_size(file));
    // In holes, too.
    for (const off_t at : {off_t{0}, size / 2, size - 1}) {
      Flip(file, at);
      ExpectOneProblem(file);
      Flip(file, at);
    }
  }
  EXPECT_EQ(FindProblems(base_.root()), "");
  Flip(sums_, static_cast<off_t>(std::filesystem::file_size(sums_)) / 2);
  ExpectOneProblem("the sums");
}

/// A commit that took away a directory and replaced a file, and damage to what
/// undo needs of it.
class UndoCheckTest : public ::testing::Test {
 protected:
  UndoCheckTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    base_.File("dir/sub/q", "qqqq");
    base_.File("a", "old");
    base_.File("shared", "1");
    base_.HardLink("shared", "dir/shared");
    auto driver = CoreDriver::Start(base_.root(), {});
    EXPECT_TRUE(driver.has_value());
    Driver& fs = **driver;
    EXPECT_TRUE(fs.WriteFile("a", "new").has_value());
    EXPECT_TRUE(fs.Unlink("dir/sub/q").has_value());
    EXPECT_TRUE(fs.Rmdir("dir/sub").has_value());
    EXPECT_TRUE(fs.Unlink("dir/shared").has_value());
    EXPECT_TRUE(fs.Rmdir("dir").has_value());
    EXPECT_TRUE(fs.Commit().has_value());
    driver->reset();
    for (const auto& entry :
         std::filesystem::directory_iterator(base_.root() + "/.txfs/vault")) {
      vault_ = entry.path();
    }
    id_ = std::filesystem::path(vault_).filename();
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(vault_)) {
      if (entry.path().filename() == "q") file_ = entry.path();
    }
  }

  string History(const string& suffix) {
    return base_.root() + "/.txfs/history/" + id_ + suffix;
  }

  /// The kinds that fsck finds, each once.
  std::set<string> Kinds() { return Kinds(base_.root()); }
  static std::set<string> Kinds(const string& root) {
    std::set<string> kinds;
    for (const Problem& problem : CheckWorkspaceStore(root).problems) {
      kinds.insert(problem.kind);
    }
    return kinds;
  }

  /// What fsck says of no problem.
  static string Notes(const string& root) {
    string notes;
    for (const string& note : CheckWorkspaceStore(root).notes) {
      notes += note + "\n";
    }
    return notes;
  }

  /// Does something with the commits of the store of workspace `root`.
  static void WithCommitter(const string& root,
                            const std::function<void(Committer&)>& act) {
    const auto directory = OpenAt(AT_FDCWD, root, O_RDONLY);
    const BaseDirectory base(*OpenAt(AT_FDCWD, root, O_RDONLY | O_DIRECTORY));
    auto store = Store::Open(*OpenAt(directory->get(), ".txfs", O_RDONLY),
                             root + "/.txfs", root);
    ASSERT_TRUE(store.has_value());
    Committer committer(**store, base);
    act(committer);
  }

  /// Makes the sums of what the commit took away, unless told to stop at the
  /// question of this number.
  void Sum(int questions = INT_MAX) {
    WithCommitter(base_.root(), [&](Committer& committer) {
      EXPECT_OK(committer.SumVaults([&] { return --questions <= 0; }));
    });
  }

  VaultSums Sums() {
    const string bytes = *ReadWholeFile(AT_FDCWD, vault_ + "/" + kSumsFile);
    return *DecodeSums(AsBytes(bytes));
  }

  /// That undo does nothing, and says why.
  void ExpectRefused() { ExpectRefused(base_.root(), ""); }
  void ExpectRefused(const string& root, const string& why) {
    WithCommitter(root, [&](Committer& committer) {
      const auto undone =
          committer.Undo(id_, {5, 0}, [](const auto& work) { return work(); });
      ASSERT_FALSE(undone.has_value());
      EXPECT_NE(undone.error().hint, "");
      EXPECT_THAT(undone.error().message, ::testing::HasSubstr(why));
    });
    EXPECT_FALSE(std::filesystem::exists(root + "/dir"));
    EXPECT_EQ(*ReadWholeFile(AT_FDCWD, root + "/a"), "new");
    EXPECT_FALSE(std::filesystem::exists(root + "/.txfs/intent"));
  }

  /// That undo brings back what there was, but for the content of `file_`.
  void ExpectUndone() {
    WithCommitter(base_.root(), [&](Committer& committer) {
      EXPECT_OK(
          committer.Undo(id_, {5, 0}, [](const auto& work) { return work(); }));
    });
    EXPECT_TRUE(std::filesystem::exists(base_.root() + "/dir/sub/q"));
    EXPECT_EQ(*ReadWholeFile(AT_FDCWD, base_.root() + "/a"), "old");
  }

  TempDir scratch_;
  BaseTree base_;
  string vault_, id_, file_;
};

/// Another daemon makes some, or all, while the first is at its first file.
TEST_F(UndoCheckTest, SumsOfTwoDaemonsAreMerged) {
  for (const int questions_of_other : {3, INT_MAX}) {
    std::filesystem::remove(vault_ + "/" + kSumsFile);
    WithCommitter(base_.root(), [&](Committer& committer) {
      int question = 0;
      EXPECT_OK(committer.SumVaults([&] {
        if (++question == 2) {
          Sum(questions_of_other);
          EXPECT_NE(Sums().sums, std::vector<ContentSum>());
        }
        return false;
      }));
    });
    const VaultSums sums = Sums();
    EXPECT_EQ(sums.complete_for, id_);
    std::set<string> paths;
    for (const ContentSum& sum : sums.sums) paths.insert(sum.path);
    EXPECT_EQ(paths.size(), sums.sums.size());
    EXPECT_GT(paths.size(), 1u);
    EXPECT_EQ(FindProblems(base_.root()), "");
  }
}

TEST_F(UndoCheckTest, FindsWhatChangedInAVault) {
  Sum();
  ASSERT_EQ(FindProblems(base_.root()), "");
  struct stat st{};
  ASSERT_EQ(lstat(file_.c_str(), &st), 0);
  const string above = std::filesystem::path(file_).parent_path();
  const timespec times[2] = {st.st_atim, st.st_mtim};
  struct stat above_st{};
  ASSERT_EQ(lstat(above.c_str(), &above_st), 0);
  const timespec above_times[2] = {above_st.st_atim, above_st.st_mtim};
  const auto put_back = [&] {
    chmod(file_.c_str(), st.st_mode & 07777);
    utimensat(AT_FDCWD, file_.c_str(), times, 0);
    utimensat(AT_FDCWD, above.c_str(), above_times, 0);
    ASSERT_EQ(FindProblems(base_.root()), "");
  };
  const auto expect_found = [&](const string& what) {
    EXPECT_EQ(Kinds(), std::set<string>{"commit.vault"}) << what;
    ExpectRefused();
  };
  std::ofstream(file_) << "QQQQ";
  expect_found("content");
  std::ofstream(file_) << "qqqq";
  put_back();
  std::filesystem::resize_file(file_, 2);
  utimensat(AT_FDCWD, file_.c_str(), times, 0);
  expect_found("size");
  std::ofstream(file_) << "qqqq";
  put_back();
  chmod(file_.c_str(), 0600);
  expect_found("mode");
  put_back();
  const timespec later[2] = {{7, 0}, {7, 0}};
  utimensat(AT_FDCWD, file_.c_str(), later, 0);
  expect_found("time");
  put_back();
  std::ofstream(above + "/stranger") << "x";
  expect_found("another file");
  std::filesystem::remove(above + "/stranger");
  put_back();
  std::filesystem::rename(file_, scratch_.path() + "/q");
  utimensat(AT_FDCWD, above.c_str(), above_times, 0);
  expect_found("a file that is gone");
  std::filesystem::copy(scratch_.path() + "/q", file_);
  expect_found("another file of the name");
  std::filesystem::remove(file_);
  std::filesystem::rename(scratch_.path() + "/q", file_);
  put_back();
  const auto names = ListNames(AT_FDCWD, vault_);
  ASSERT_TRUE(names.has_value() && names->size() == 3);
  for (const string& name : *names) {
    if (name == kSumsFile) continue;
    const string moved = scratch_.path() + "/slot";
    std::filesystem::rename(vault_ + "/" + name, moved);
    expect_found("without " + name);
    std::filesystem::rename(moved, vault_ + "/" + name);
  }
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(UndoCheckTest, FindsOtherContentThoughTheTimeOfItIsWhatItWas) {
  Sum();
  Flip(file_, 2);
  EXPECT_EQ(Kinds(), std::set<string>{"commit.vault"});
  EXPECT_EQ(CheckWorkspaceStore(base_.root()).problems.size(), 1u);
  ExpectRefused();
  Flip(file_, 2);
  EXPECT_EQ(FindProblems(base_.root()), "");
  EXPECT_EQ(Notes(base_.root()), "");
  ExpectUndone();
}

/// As with a disk that forgets.
TEST_F(UndoCheckTest, FindsOtherContentThoughNobodyTouchedIt) {
  Sum();
  VaultSums sums = Sums();
  for (ContentSum& sum : sums.sums) {
    if (sum.path.ends_with("/q")) sum.pieces.front().checksum ^= 1;
  }
  std::ofstream(vault_ + "/" + kSumsFile) << AsText(EncodeSums(sums));
  EXPECT_EQ(Kinds(), std::set<string>{"commit.vault"});
}

TEST_F(UndoCheckTest, SaysWhatIsNotKnownOfWhatHasNoSum) {
  EXPECT_THAT(
      Notes(base_.root()),
      ::testing::HasSubstr("2 files in the vaults have no checksum yet"));
  Flip(file_, 2);
  EXPECT_EQ(FindProblems(base_.root()), "");
  EXPECT_THAT(Notes(base_.root()),
              ::testing::HasSubstr("/q, cannot be verified"));
  // What it has by now is not what was taken away: it gets none.
  Sum();
  EXPECT_EQ(Sums().complete_for, "");
  EXPECT_THAT(Notes(base_.root()),
              ::testing::HasSubstr("/q, cannot be verified"));
  ExpectUndone();
}

TEST_F(UndoCheckTest, SumsGoOnWhereTheyWereStopped) {
  EXPECT_EQ(Sums().sums.size(), 1u) << "what the commit brought";
  std::set<size_t> sizes;
  for (int runs = 0; Sums().complete_for.empty(); ++runs) {
    ASSERT_LT(runs, 10);
    Sum(4);
    sizes.insert(Sums().sums.size());
  }
  EXPECT_EQ(sizes, (std::set<size_t>{2, 3}));
  EXPECT_EQ(Notes(base_.root()), "");
}

/// One sum is enough for what goes to and fro.
TEST_F(UndoCheckTest, SumsAreGoodForUndoAndItsUndo) {
  Sum();
  const VaultSums sums = Sums();
  for (int i = 0; i < 3; ++i) {
    WithCommitter(base_.root(), [&](Committer& committer) {
      const auto undone = committer.Undo(
          id_, {5 + i, 0}, [](const auto& work) { return work(); });
      ASSERT_OK(undone);
      id_ = undone->id;
    });
    EXPECT_EQ(FindProblems(base_.root()), "");
    EXPECT_EQ(Notes(base_.root()), "");
    EXPECT_EQ(Sums(), sums);
    for (const ContentSum& sum : sums.sums) {
      const string path = vault_ + "/" + sum.path;
      struct stat st{};
      if (lstat(path.c_str(), &st) != 0 || st.st_ino != sum.ino) continue;
      Flip(path, 0);
      EXPECT_EQ(Kinds(), std::set<string>{"commit.vault"}) << path;
      Flip(path, 0);
    }
  }
}

/// Also when what was staged in a place has a sum, and what was put there not.
TEST_F(UndoCheckTest, ACopyIsSoundBeforeThereAreAllSums) {
  const string copy = scratch_.path() + "/copy";
  ASSERT_EQ(std::system(("cp -a " + base_.root() + " " + copy).c_str()), 0);
  EXPECT_EQ(FindProblems(copy), "");
}

TEST_F(UndoCheckTest, ACopyOfTheStoreIsSoundButCannotUndo) {
  Sum();
  const string copy = scratch_.path() + "/copy";
  ASSERT_EQ(std::system(("cp -a " + base_.root() + " " + copy).c_str()), 0);
  EXPECT_EQ(FindProblems(copy), "");
  EXPECT_THAT(Notes(copy), ::testing::HasSubstr("was copied or restored"));
  ExpectRefused(copy, "was copied or restored");
  const string file = copy + file_.substr(base_.root().size());
  Flip(file, 1);
  EXPECT_EQ(Kinds(copy), std::set<string>{"commit.vault"});
  Flip(file, 1);
  std::filesystem::remove(file);
  EXPECT_EQ(Kinds(copy), std::set<string>{"commit.vault"});
}

TEST_F(UndoCheckTest, TakesForNoDamageWhatIsDoneUnderAnotherName) {
  std::ofstream(base_.root() + "/shared") << "longer than it was";
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(UndoCheckTest, MissesEveryFileOfACommit) {
  const std::pair<string, string> files[] = {{"", "store.summary"},
                                             {".plan", "commit.plan"},
                                             {".image", "commit.image"},
                                             {".vault", "commit.vault"}};
  const string moved = scratch_.path() + "/moved";
  for (const auto& [suffix, kind] : files) {
    std::filesystem::rename(History(suffix), moved);
    EXPECT_EQ(Kinds(), std::set<string>{kind}) << suffix;
    ExpectRefused();
    std::filesystem::rename(moved, History(suffix));
  }
  const string manifest = *ReadWholeFile(AT_FDCWD, History(".vault"));
  std::ofstream(History(".vault")) << manifest.substr(1);
  EXPECT_EQ(Kinds(), std::set<string>{"commit.vault"});
  ExpectRefused();
  std::ofstream(History(".vault")) << manifest;
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(UndoCheckTest, TellsFromDamageWhatACrashLeavesOfGivingUp) {
  std::filesystem::rename(History(".plan"), History(".plan.new"));
  EXPECT_EQ(FindProblems(base_.root()), "");
  std::filesystem::remove(History(".image"));
  EXPECT_EQ(FindProblems(base_.root()), "");
}

TEST_F(UndoCheckTest, LeavesTheVaultOfACommitWithoutARecordToGc) {
  std::filesystem::remove(History(""));
  // Every command may free what is no longer kept.
  CoreDriver::Start(base_.root(), {})->reset();
  EXPECT_TRUE(std::filesystem::exists(file_));
  WithCommitter(base_.root(), [](Committer& committer) {
    ASSERT_OK(committer.FreeSpace({}, 0));
  });
  EXPECT_FALSE(std::filesystem::exists(vault_));
  EXPECT_FALSE(std::filesystem::exists(History(".plan")));
  EXPECT_FALSE(std::filesystem::exists(History(".image")));
  EXPECT_FALSE(std::filesystem::exists(History(".vault")));
  EXPECT_EQ(FindProblems(base_.root()), "");
}

/// A commit that brought a file, of which others know another name by the time
/// that it is taken back.
TEST(UndoCheckNamesTest, WhatIsWrittenUnderAnotherNameIsNoDamage) {
  const TempDir scratch;
  BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  auto driver = CoreDriver::Start(base.root(), {});
  ASSERT_OK(driver);
  ASSERT_OK((*driver)->WriteFile("f", "hello"));
  ASSERT_OK((*driver)->Commit());
  const string id = (*driver)->workspace().store().history().Ids()->back();
  ASSERT_OK((*driver)->Link("f", "g"));
  ASSERT_OK((*driver)->Commit());
  ASSERT_OK((*driver)->workspace().Undo(id));
  std::ofstream(base.root() + "/g") << "more than hello";
  EXPECT_EQ(FindProblems(base.root()), "");
}

/// A file that is too large to be read, and which a later commit wrote to in
/// place and gave its old time.
TEST(UndoCheckNamesTest, WhatALaterCommitPatchedIsNotTakenBack) {
  const TempDir scratch;
  BaseTree base(scratch.path() + "/ws");
  mkdir(base.root().c_str(), 0755);
  auto driver = CoreDriver::Start(base.root(), {});
  ASSERT_OK(driver);
  const FileTimes times = {timespec{1'000'000'000, 0},
                           timespec{1'000'000'000, 0}};
  ASSERT_OK((*driver)->WriteFile("f", "hello"));
  ASSERT_OK((*driver)->Truncate("f", 70 << 20));
  ASSERT_OK((*driver)->Utimens("f", times));
  ASSERT_OK((*driver)->Commit());
  const string first = (*driver)->workspace().store().history().Ids()->back();
  ASSERT_OK((*driver)->PatchFile("f", 1, "a"));
  ASSERT_OK((*driver)->Utimens("f", times));
  ASSERT_OK((*driver)->Commit());
  const string second = (*driver)->workspace().store().history().Ids()->back();
  auto refused = (*driver)->workspace().Undo(first);
  ASSERT_OK(refused);
  EXPECT_EQ(refused->conflicts.size(), 1u);
  const auto taken_back = (*driver)->workspace().Undo(second);
  ASSERT_OK(taken_back);
  EXPECT_TRUE(taken_back->conflicts.empty());
  const auto undone = (*driver)->workspace().Undo(first);
  ASSERT_OK(undone);
  EXPECT_TRUE(undone->conflicts.empty());
  EXPECT_EQ(FindProblems(base.root()), "");
}

// --- any damage ------------------------------------------------------------

/// Every entry below a directory with its attributes, times and content.
std::map<string, string> Fingerprint(const string& root) {
  std::map<string, string> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    struct stat st{};
    EXPECT_EQ(lstat(entry.path().c_str(), &st), 0);
    string text =
        std::to_string(st.st_mode) + " " + std::to_string(st.st_size) + " " +
        std::to_string(st.st_nlink) + " " + std::to_string(st.st_mtim.tv_sec) +
        "." + std::to_string(st.st_mtim.tv_nsec) + " " +
        std::to_string(st.st_ctim.tv_sec) + "." +
        std::to_string(st.st_ctim.tv_nsec);
    if (S_ISREG(st.st_mode)) {
      const auto content = ReadWholeFile(AT_FDCWD, entry.path());
      EXPECT_TRUE(content.has_value());
      text += " " + std::to_string(Checksum(AsBytes(*content)));
    }
    found[entry.path()] = text;
  }
  return found;
}

/// What a daemon that was killed leaves: tables, spool, and an intake that is
/// ahead of them.
class DamagedStoreTest : public ::testing::Test {
 protected:
  DamagedStoreTest() : base_(scratch_.path() + "/ws") {
    mkdir(base_.root().c_str(), 0755);
    PrepareBase(base_);
    auto driver = CoreDriver::Start(base_.root(),
                                    {.journal = {.background_drain = false}});
    EXPECT_TRUE(driver.has_value());
    driver_ = std::move(*driver);
    EXPECT_TRUE(driver_->Commit().has_value());
    for (int i = 0; i < 300; ++i) Work(i);
    EXPECT_TRUE(driver_->Settle().has_value());
    for (int i = 300; i < 330; ++i) Work(i);
    std::filesystem::create_directory(scratch_.path() + "/copy");
    std::filesystem::copy(base_.root() + "/.txfs",
                          scratch_.path() + "/copy/.txfs",
                          std::filesystem::copy_options::recursive);
    driver_.reset();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             scratch_.path() + "/copy")) {
      if (entry.path().filename() == "reserve") {
        std::filesystem::remove(entry.path());
      } else if (entry.is_regular_file() && entry.file_size() > 0) {
        files_.push_back(entry.path());
      }
    }
    std::ranges::sort(files_);
  }

  void Work(int i) {
    const string name = "f" + std::to_string(i % 40);
    std::ignore = driver_->WriteFile(name, string(1 + i * 997 % 30'000, 'x'));
    if (i % 7 == 0) std::ignore = driver_->Mkdir("d" + std::to_string(i), 0755);
    if (i % 5 == 0) std::ignore = driver_->Link(name, name + ".link");
    if (i % 3 == 0) std::ignore = driver_->Unlink(name);
    std::ignore = driver_->SetXattr(name, "user.n", std::to_string(i), 0);
  }

  TempDir scratch_;
  BaseTree base_;
  std::unique_ptr<Driver> driver_;
  vector<string> files_;
};

TEST_F(DamagedStoreTest, IsReportedOrHarmlessAndNeverWritten) {
  const string copy = scratch_.path() + "/copy";
  EXPECT_EQ(FindProblems(copy), "");
  const uint64_t seed = FirstSeed();
  SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::map<string, int> reported;
  int seen = 0;
  for (int round = 0; round < Scaled(200); ++round) {
    const auto data = std::ranges::find_if(
        files_, [](const string& path) { return path.ends_with("data.mdb"); });
    const string path =
        round % 2 == 0 ? *data : files_[random() % files_.size()];
    const string before = *ReadWholeFile(AT_FDCWD, path);
    // Files are larger than what is in use of them.
    const size_t used = before.find_last_not_of('\0') + 1;
    const size_t at = random() % used;
    string damaged = before;
    switch (random() % 4) {
      case 0:
        damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
        break;
      case 1:
        damaged.resize(at);
        break;
      case 2:
        std::fill_n(damaged.begin() + static_cast<ptrdiff_t>(at),
                    std::min<size_t>(512, before.size() - at), '\0');
        break;
      default:
        for (size_t i = at; i < std::min(at + 64, before.size()); ++i) {
          damaged[i] = static_cast<char>(random());
        }
    }
    std::ofstream(path, std::ios::binary) << damaged;
    const auto fingerprint = Fingerprint(copy);
    const CheckReport report = CheckWorkspaceStore(copy);
    for (const Problem& problem : report.problems) ++reported[problem.kind];
    if (!report.problems.empty()) ++seen;
    ASSERT_EQ(Fingerprint(copy), fingerprint) << path << " at " << at;
    std::ofstream(path, std::ios::binary) << before;
  }
  EXPECT_EQ(FindProblems(copy), "");
  std::cout << "TXFS_TEST_SEED=" << seed << ": " << seen << " of "
            << Scaled(200) << " damages were seen\n";
  for (const auto& [kind, count] : reported) {
    std::cout << "  " << kind << " " << count << "\n";
  }
  // Few damages may be of few kinds.
  EXPECT_GE(reported.size(), Scaled(200) < 100 ? 2U : 4U);
}

}  // namespace
}  // namespace txfs::testing

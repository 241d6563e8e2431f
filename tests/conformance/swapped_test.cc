// Somebody who may write to the workspace's directories swaps what is in them
// while root, or another user, commits, takes back, or reads.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <functional>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "fs/commit/commit_run.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/temp_dir.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr uint64_t kSwappedSize = uint64_t{65} << 20;
/// Crash points from one swap to the next.
constexpr uint64_t kStride = 7;

/// At each crash point of this process.
std::function<void()> at_point;

class Watching {
 public:
  explicit Watching(std::function<void()> watch) {
    at_point = std::move(watch);
    SetCrashHook([] { at_point(); });
  }
  ~Watching() { SetCrashHook(nullptr); }
  Watching(const Watching&) = delete;
  Watching& operator=(const Watching&) = delete;
};

/// All that is to be seen of an open object but how often and where it has a
/// name.
string Look(int fd) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return "not there";
  string seen = std::to_string(st.st_mode) + " " + std::to_string(st.st_uid) +
                " " + std::to_string(st.st_gid) + " ";
  // A directory that has the path of another gets what is new in that.
  if (!S_ISDIR(st.st_mode)) {
    seen += std::to_string(st.st_size) + " " +
            std::to_string(st.st_mtim.tv_sec) + "." +
            std::to_string(st.st_mtim.tv_nsec) + " ";
  }
  string names(1000, '\0');
  const string proc = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::listxattr(proc.c_str(), names.data(), names.size());
  seen.append(names, 0, n > 0 ? static_cast<size_t>(n) : 0);
  if (S_ISREG(st.st_mode)) {
    string content(100, '\0');
    const ssize_t read = ::pread(fd, content.data(), content.size(), 0);
    seen.append(content, 0, read > 0 ? static_cast<size_t>(read) : 0);
  }
  return seen;
}

/// How what has a name is swapped for something else.
enum class Way { kSymlink, kOther };

/// What the commit is to be kept from doing to another object.
const std::vector<string> kSwapTargets = {
    "chmodded", "timed", "tagged",   "written", "large", "linked",
    "moved",    "dir",   "dir/made", "gone",    "dir/in"};

class SwapRig {
 public:
  SwapRig() : base_(scratch_.path() + "/ws") {
    base_.Directory("");
    for (const char* name : {"chmodded", "timed", "tagged", "written", "linked",
                             "moved", "gone"}) {
      base_.File(name, string("old ") + name);
    }
    base_.SparseFile("large", kSwappedSize);
    base_.Directory("dir");
    base_.File("dir/in", "in");
    base_.SetTimes();
    const string outside = scratch_.path() + "/outside";
    BaseTree victims(outside);
    victims.Directory("");
    victims.File("file", "of somebody else", 0600);
    victims.Directory("dir", 0700);
    victims.File("dir/in", "of somebody else", 0600);
    victims.File("dir/made", "of somebody else", 0600);
    victims.SetTimes();
    for (const char* name : {"file", "dir", "dir/in", "dir/made"}) {
      auto fd = OpenAt(AT_FDCWD, outside + "/" + name, O_RDONLY);
      if (fd) victims_.push_back(std::move(*fd));
    }
    before_ = LookAll();
    driver_ = CoreDriver::Start(base_.root(),
                                {.collects = false, .is_for_others = true})
                  .value();
    EXPECT_OK(Work());
  }

  /// Swaps `target` at crash point `point` of `act`. Returns whether there was
  /// one.
  bool SwapAt(const string& target, Way way, uint64_t point,
              const std::function<Status(CoreDriver&)>& act) {
    uint64_t at = 0;
    {
      const Watching watching([&] {
        if (++at == point) Swap(target, way);
      });
      done_ = act(*driver_);
    }
    EXPECT_EQ(LookAll(), before_) << target << " at " << point;
    if (at < point) return false;
    // What recovers finds it swapped, too.
    driver_.reset();
    auto again = CoreDriver::Start(base_.root(), {.collects = false});
    if (again) driver_ = std::move(*again);
    EXPECT_EQ(LookAll(), before_) << target << " at " << point << ", recovery";
    return true;
  }

  [[nodiscard]] const Status& done() const { return done_; }
  CoreDriver& driver() { return *driver_; }

 private:
  Status Work() {
    driver_->ActAs(::geteuid(), ::getegid());
    TRY(driver_->Chmod("chmodded", 0666));
    TRY(driver_->Utimens("timed", {.atime = {.tv_sec = 5, .tv_nsec = 5},
                                   .mtime = {.tv_sec = 6, .tv_nsec = 6}}));
    TRY(driver_->SetXattr("tagged", "user.tag", "value", 0));
    TRY(driver_->WriteFile("written", "new"));
    TRY(driver_->Chmod("written", 0666));
    TRY(driver_->PatchFile("large", 1, "patched"));
    TRY(driver_->Chmod("large", 0666));
    TRY(driver_->Link("linked", "dir/link"));
    TRY(driver_->Chmod("linked", 0666));
    TRY(driver_->Rename("moved", "moved too", 0));
    TRY(driver_->Chmod("moved too", 0666));
    TRY(driver_->Chmod("dir", 0777));
    TRY(driver_->WriteFile("dir/made", "made"));
    TRY(driver_->Chmod("dir/in", 0666));
    TRY(driver_->Unlink("gone"));
    if (::geteuid() == 0) TRY(driver_->Chown("chmodded", 65534, 65534));
    return {};
  }

  void Swap(const string& target, Way way) {
    const string path = base_.root() + "/" + target;
    const string victim =
        scratch_.path() + "/outside/" + (target == "dir" ? "dir" : "file");
    std::ignore = ::rename(path.c_str(), (path + ".swapped").c_str());
    if (way == Way::kSymlink) {
      std::ignore = ::symlink(victim.c_str(), path.c_str());
    } else if (target == "dir") {
      std::ignore = ::rename(victim.c_str(), path.c_str());
    } else {
      std::ignore = ::link(victim.c_str(), path.c_str());
    }
  }

  std::vector<string> LookAll() {
    std::vector<string> seen;
    for (const UniqueFd& fd : victims_) seen.push_back(Look(fd.get()));
    return seen;
  }

  TempDir scratch_{MemoryDirectory()};
  BaseTree base_;
  std::vector<UniqueFd> victims_;
  std::vector<string> before_;
  std::unique_ptr<CoreDriver> driver_;
  Status done_;
};

Status Commit(CoreDriver& driver) { return driver.Commit(); }
Status Undo(CoreDriver& driver) { return driver.Undo(""); }

class SwappedTest : public ::testing::TestWithParam<Way> {};

TEST_P(SwappedTest, NothingIsDoneToWhatIsSwappedInDuringACommit) {
  uint64_t swaps = 0;
  uint64_t stopped = 0;
  for (size_t i = 0; i < kSwapTargets.size(); ++i) {
    Picks picks(i);
    for (uint64_t point = 1 + (i % kStride);; point = picks.Next() * kStride) {
      SwapRig rig;
      if (!rig.SwapAt(kSwapTargets[i], GetParam(), point, Commit)) break;
      ++swaps;
      if (!rig.done()) ++stopped;
    }
  }
  EXPECT_GT(swaps, 0U);
  EXPECT_GT(stopped, 0U);
  std::cout << swaps << " swaps, " << stopped << " commits stopped\n";
}

TEST_P(SwappedTest, NothingIsDoneToWhatIsSwappedInDuringAnUndo) {
  uint64_t swaps = 0;
  for (size_t i = 0; i < kSwapTargets.size(); ++i) {
    Picks picks(i);
    for (uint64_t point = 1 + (i % kStride);; point = picks.Next() * kStride) {
      SwapRig rig;
      ASSERT_OK(rig.driver().Commit());
      if (!rig.SwapAt(kSwapTargets[i], GetParam(), point, Undo)) break;
      ++swaps;
    }
  }
  EXPECT_GT(swaps, 0U);
  std::cout << swaps << " swaps\n";
}

INSTANTIATE_TEST_SUITE_P(Ways, SwappedTest,
                         ::testing::Values(Way::kSymlink, Way::kOther),
                         [](const auto& test) {
                           return test.param == Way::kSymlink ? "Symlink"
                                                              : "Other";
                         });

/// A commit or an undo that sets attributes of "f", inode 7.
CommitSteps Setting(const ObjectAttributes& after,
                    std::optional<ObjectAttributes> before, uint64_t ino = 7) {
  CommitStep step{.kind = ::txfs::StepKind::kAttributes,
                  .from = Spot::Base("f"),
                  .to = Spot::Base("f"),
                  .ino = ino};
  step.set_before = std::move(before);
  step.set_after = after;
  return {step};
}

TEST(HarmlessPlanTest, OnlyAFileThatHadThemHasSetUserIdAndSetGroupId) {
  const ObjectAttributes plain{.mode = 0755};
  for (const uint32_t mode : {04755U, 02755U, 06755U}) {
    const ObjectAttributes more{.mode = mode};
    const auto check = [](const CommitSteps& steps, bool is_undo) {
      return CommitRunner::CheckHarmless(steps, is_undo);
    };
    EXPECT_ERRNO(check(Setting(more, {}), false), EBADMSG);
    EXPECT_ERRNO(check(Setting(more, plain), false), EBADMSG);
    EXPECT_OK(check(Setting(more, more), false));
    EXPECT_OK(check(Setting(plain, more), false));
    // An undo gives back, but only to an object that it names.
    EXPECT_OK(check(Setting(more, plain), true));
    EXPECT_ERRNO(check(Setting(more, plain, 0), true), EBADMSG);
    const ObjectAttributes directory{.type = FileType::kDirectory,
                                     .mode = mode};
    EXPECT_OK(check(Setting(directory, {}), false));
  }
}

TEST(HarmlessPlanTest, NoAttributesButThoseOfUsersAreSet) {
  ObjectAttributes after{.mode = 0755};
  after.xattrs.emplace();
  (*after.xattrs)["user.a"] = "b";
  EXPECT_OK(CommitRunner::CheckHarmless(Setting(after, {}), false));
  (*after.xattrs)["security.capability"] = "b";
  for (const bool is_undo : {false, true}) {
    EXPECT_ERRNO(CommitRunner::CheckHarmless(Setting(after, {}), is_undo),
                 EBADMSG);
  }
}

// --- what is read ----------------------------------------------------------

/// A transaction as the kernel uses it: it looks a name up once and keeps what
/// it was told.
class ToldTest : public ::testing::Test {
 protected:
  ToldTest() : base_(scratch_.path() + "/ws") {
    base_.Directory("");
    base_.File("x", "public");
    base_.File("secret", "SECRET", 0600);
    base_.Xattr("secret", "user.tag", "SECRET");
    base_.Directory("d");
    base_.File("d/f", "public");
    base_.Directory("closed", 0700);
    base_.File("closed/f", "SECRET");
    base_.File("closed/g", "SECRET");
    driver_ = CoreDriver::Start(base_.root(),
                                {.collects = false, .is_for_others = true})
                  .value();
  }

  Filesystem& fs() { return driver_->workspace().filesystem(); }
  Ino Find(Ino parent, const string& name) {
    const auto node = fs().Lookup(parent, name);
    return node ? node->ino : kNoIno;
  }
  string Read(Ino ino) {
    string text(100, '\0');
    const auto size =
        fs().Read(ino, 0, std::as_writable_bytes(std::span(text)));
    if (!size) return ErrnoName(size.error().code);
    text.resize(*size);
    return text;
  }
  void Move(const string& from, const string& to) {
    std::filesystem::rename(base_.root() + "/" + from, base_.root() + "/" + to);
  }
  StaleCaches Settle() {
    StaleCaches told;
    fs().SettleDoubts([&](const StaleCaches& stale) { told = stale; });
    return told;
  }

  TempDir scratch_{MemoryDirectory()};
  BaseTree base_;
  std::unique_ptr<CoreDriver> driver_;
};

TEST_F(ToldTest, AFileThatTookThePlaceOfAnotherIsNotShownForIt) {
  const Ino x = Find(kRootIno, "x");
  Move("x", "x.old");
  Move("secret", "x");
  EXPECT_EQ(Read(x), "ESTALE");
  EXPECT_ERRNO(fs().GetXattr(x, "user.tag"), ESTALE);
  EXPECT_ERRNO(fs().ListXattrs(x), ESTALE);
  EXPECT_EQ(Read(x), "ESTALE");
  const StaleCaches told = Settle();
  ASSERT_EQ(told.names.empty(), false);
  EXPECT_EQ(told.names.front().name, "x");
  // Who had it open before never sees the other one.
  EXPECT_NE(Read(x), "SECRET");
  const auto now = fs().Lookup(kRootIno, "x");
  ASSERT_OK(now);
  EXPECT_NE(now->ino, x);
  EXPECT_EQ(now->st.st_mode & 0777, 0600U);
  EXPECT_EQ(Read(now->ino), "SECRET");
}

TEST_F(ToldTest, AFileThatWasClosedSinceIsNotShown) {
  const Ino x = Find(kRootIno, "x");
  EXPECT_EQ(Read(x), "public");
  ASSERT_EQ(::chmod((base_.root() + "/x").c_str(), 0600), 0);
  base_.File("x", "SECRET", 0600);
  EXPECT_EQ(Read(x), "ESTALE");
  EXPECT_THAT(Settle().inodes, ::testing::Each(x));
  // Whom the kernel let in before it heard of it may be on the way.
  EXPECT_EQ(Read(x), "ESTALE");
  Settle();
  EXPECT_EQ(Read(x), "ESTALE");
  const auto st = fs().GetAttr(x);
  ASSERT_OK(st);
  EXPECT_EQ(st->st_mode & 0777, 0600U);
  EXPECT_EQ(Read(x), "SECRET");
}

TEST_F(ToldTest, AFileThatWasTouchedIsNotShownWhenItWasClosedSince) {
  const Ino x = Find(kRootIno, "x");
  const std::string_view more = "+";
  ASSERT_OK(fs().Write({}, x, 6, AsBytes(more), {}));
  EXPECT_EQ(Read(x), "public+");
  ASSERT_EQ(::chmod((base_.root() + "/x").c_str(), 0600), 0);
  EXPECT_EQ(Read(x), "ESTALE");
}

TEST_F(ToldTest, ADirectoryThatTookThePlaceOfAnotherIsNotLookedInto) {
  const Ino d = Find(kRootIno, "d");
  const Ino f = Find(d, "f");
  Move("d", "d.old");
  Move("closed", "d");
  EXPECT_NE(Read(f), "SECRET");
  EXPECT_ERRNO(fs().Lookup(d, "g"), ESTALE);
  EXPECT_ERRNO(fs().ReadDirectory(d, 0, [](const DirEntry&) { return true; }),
               ESTALE);
  Settle();
  EXPECT_NE(Read(f), "SECRET");
  // Whom the kernel let in before it heard of it may be on the way.
  const auto is_in = [&](Ino directory) {
    return fs().Lookup(directory, "g").has_value();
  };
  EXPECT_FALSE(is_in(d));
  const Ino now = Find(kRootIno, "d");
  EXPECT_NE(now, d);
  EXPECT_FALSE(is_in(d));
  EXPECT_EQ(Read(Find(now, "g")), "SECRET");
}

TEST_F(ToldTest, ADirectoryThatWasClosedSinceIsNotLookedInto) {
  const Ino d = Find(kRootIno, "d");
  ASSERT_EQ(::chmod((base_.root() + "/d").c_str(), 0700), 0);
  for (int i = 0; i < 2; ++i) {
    EXPECT_ERRNO(fs().Lookup(d, "f"), ESTALE);
    Settle();
  }
  ASSERT_OK(fs().GetAttr(d));
  EXPECT_OK(fs().Lookup(d, "f"));
}

TEST_F(ToldTest, AFileThatWasWrittenAnewWithTheSameRightsIsShown) {
  const Ino x = Find(kRootIno, "x");
  base_.File("x.new", "edited");
  Move("x.new", "x");
  EXPECT_EQ(Read(x), "edited");
}

}  // namespace
}  // namespace txfs::testing

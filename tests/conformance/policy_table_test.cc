#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "journal/support/unique_fd.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/mapping.h"
#include "tests/conformance/policy_attempts.h"

namespace txfs::testing {
namespace {

using ::std::string;

constexpr char kTableRules[] = R"(
schema = 1

[[fs]]
id = "kept"
path = "**/kept/**"
reason = "it is to stay as it is"
suggest = "write elsewhere"

[[fs]]
id = "sealed"
path = "/sealed/**"
nocase = true
errno = "EROFS"
reason = "it is to stay as it is, in whichever case"
suggest = "write elsewhere"

[[fs]]
id = "full"
path = ["/full", "/full-too"]
errno = "EDQUOT"
reason = "there is enough of it"
suggest = "remove something"
)";

constexpr char kSecret[] = "secret";  // Write("WriteAtTheEnd") knows its size
constexpr char kOdd[] = "odd\n\xff\t\x01 ";
string Long() { return string(255, 'n'); }

/// Something that a rule is about, and how it is reached.
struct Target {
  Reach reach;
  string path;                     ///< for the attempt
  std::vector<string> names = {};  ///< one is in the record; none: `path`
  string rule = "kept", error = "EPERM";
};

/// A shared mapping of a file's first page, with real system calls.
class StoreMapping {
 public:
  explicit StoreMapping(const string& path)
      : fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)),
        mapping_(fd_.get(), 4096, MAP_SHARED) {
    EXPECT_TRUE(mapping_.valid()) << path;
  }

  /// What msync says after a store.
  Status Store() {
    std::ranges::copy(string("evil"), mapping_.data());
    if (!mapping_.Sync()) return Fail(errno, "msync");
    return {};
  }
  /// Attributes of an open file, by the name of the operation.
  std::vector<std::pair<string, Status>> ChangeAttributes() const {
    const auto done = [](int result) -> Status {
      if (result == 0) return {};
      return Fail(errno, "attributes");
    };
    const int fd = fd_.get();
    const timespec times[] = {{.tv_sec = 1}, {.tv_sec = 1}};
    std::vector<std::pair<string, Status>> all;
    all.emplace_back("chmod", done(fchmod(fd, 0700)));
    all.emplace_back("utimens", done(futimens(fd, times)));
    all.emplace_back("setxattr", done(fsetxattr(fd, "user.evil", "1", 1, 0)));
    all.emplace_back("removexattr", done(fremovexattr(fd, "user.kept")));
    // Of others the kernel refuses this itself.
    if (geteuid() == 0) all.emplace_back("chown", done(fchown(fd, 12, 34)));
    return all;
  }
  /// Returns when the store is forgotten: a thread tells the kernel so.
  void AwaitContent() const {
    const volatile char* first = mapping_.data();
    while (*first != kSecret[0]) sched_yield();
  }

 private:
  const UniqueFd fd_;
  const Mapping mapping_;
};

/// Every operation x every way to something that a rule is about.
class PolicyTableTest : public ConformanceTest {
 protected:
  PolicyTableTest() {
    base().File("free", "anything");
    base().File("dir/f", "f");
    base().Directory("spare");
    for (const string& path :
         {string("kept/file"), string("kept/tied"), "kept/" + string(kOdd),
          "kept/" + Long(), string("Sealed/FILE"), string("full"),
          string("plain/f"), string("swapped"), string("top/kept/file")}) {
      base().File(path, kSecret);
      base().Xattr(path, "user.kept", "1");
    }
    base().Directory("kept/empty");
    base().Xattr("kept/empty", "user.kept", "1");
    base().Directory("other");
    base().HardLink("kept/tied", "other/tied");
    base().Symlink("kept/file", "soft");
    base().Symlink("../free", "kept/soft");
    base().Symlink("kept", "soft-directory");
  }

  void RefusesEverything(const Target& target) {
    fs();
    if (target.reach != kOpenBefore) UseRules();
    const std::vector<Opened> attempts = OpenAll(target);
    std::unique_ptr<StoreMapping> mapping;
    if (GetParam().kernel && HasContent(target)) {
      mapping =
          std::make_unique<StoreMapping>(fs().mountpoint() + "/" + target.path);
    }
    if (target.reach == kOpenBefore) UseRules();
    before_ = View();
    ASSERT_FALSE(HasFailure());
    for (const Opened& one : attempts) {
      SCOPED_TRACE(one.attempt.name);
      ExpectRefused(one, target);
      ExpectNoEffect();
      ASSERT_FALSE(HasFailure()) << "the next ones would only repeat it";
    }
    if (mapping) ExpectAttributesRefused(*mapping, target);
    if (mapping) ExpectStoreRefused(*mapping, target);
    for (const Opened& one : attempts) Close(one.file);
    Close(watched_);
  }

  /// The same, each with nothing looked up but what it names.
  void RefusesEverythingAtFirstSight(const Target& target) {
    fs();
    before_ = View();
    for (const Attempt& attempt : AttemptsOn(target)) {
      SCOPED_TRACE(attempt.name);
      ASSERT_OK(fs().Remount());
      UseRules();
      const Opened one = OpenFor(attempt, target);
      ExpectRefused(one, target);
      Close(one.file);
      ASSERT_FALSE(HasFailure());
    }
    before_.at("").ctime = View().at("").ctime;  // a remount changes it
    ExpectNoEffect();
  }

 private:
  struct Opened {
    Attempt attempt;
    Handle file{};
  };

  static bool HasContent(const Target& target) {
    return (target.reach & (kNotThere | kDirectory | kAbove | kLink)) == 0;
  }
  void UseRules() { ASSERT_OK(fs().UsePolicy(kTableRules)); }
  void Close(Handle file) {
    if (file != Handle{}) EXPECT_OK(fs().Close(file));
  }
  TreeView View() {
    auto view = ViewWithoutStore(fs());
    EXPECT_OK(view);
    return std::move(view).value_or(TreeView{});
  }

  static std::vector<Attempt> AttemptsOn(const Target& target) {
    std::vector<Attempt> all = AllAttempts();
    std::erase_if(all, [&](const Attempt& attempt) {
      return (attempt.reach & target.reach) == 0;
    });
    EXPECT_FALSE(all.empty());
    return all;
  }
  Opened OpenFor(const Attempt& attempt, const Target& target) {
    const bool opens = attempt.open_flags >= 0;
    return {attempt, opens ? Open(target.path, attempt.open_flags) : Handle{}};
  }
  std::vector<Opened> OpenAll(const Target& target) {
    if (HasContent(target)) watched_ = Open(target.path, O_RDONLY);
    std::vector<Opened> all;
    for (const Attempt& attempt : AttemptsOn(target)) {
      all.push_back(OpenFor(attempt, target));
    }
    return all;
  }

  void ExpectRefused(const Opened& one, const Target& target) {
    const Status done = one.attempt.run(fs(), target.path, one.file);
    EXPECT_EQ(ErrnoName(ErrnoOf(done)), target.error);
    EXPECT_EQ(ExpectRecord(one.attempt, target), 1U) << "operations refused";
  }

  /// By a descriptor alone.
  void ExpectAttributesRefused(const StoreMapping& mapping,
                               const Target& target) {
    for (const auto& [op, done] : mapping.ChangeAttributes()) {
      SCOPED_TRACE(op + " of an open file");
      EXPECT_EQ(ErrnoName(ErrnoOf(done)), target.error);
    }
    // The last one.
    EXPECT_GE(
        ExpectRecord({.op = geteuid() == 0 ? "chown" : "removexattr"}, target),
        1U);
    ExpectNoEffect();
  }

  /// What the kernel writes back is refused, and everybody sees what was there.
  void ExpectStoreRefused(StoreMapping& mapping, const Target& target) {
    SCOPED_TRACE("StoreThroughAMapping");
    const Status stored = mapping.Store();
    EXPECT_EQ(ErrnoName(ErrnoOf(stored)), target.error);
    EXPECT_GE(ExpectRecord({.op = "write"}, target), 1U);
    mapping.AwaitContent();
    ExpectNoEffect();
  }

  /// The newest record is of this attempt. Returns how many operations were
  /// refused since the last call.
  uint64_t ExpectRecord(const Attempt& attempt, const Target& target) {
    const auto refused = fs().ReadRefused();
    EXPECT_OK(refused);
    if (!refused || refused->empty()) return 0;
    const Refused& last = refused->back();
    EXPECT_EQ(last.op, attempt.op);
    EXPECT_EQ(last.rule, target.rule);
    EXPECT_EQ(last.error, target.error);
    EXPECT_TRUE(IsPath(last.path, attempt.path, target)) << last.path;
    EXPECT_TRUE(IsPath(last.new_path, attempt.new_path, target))
        << last.new_path;
    uint64_t count = 0;
    for (const Refused& one : *refused) count += one.count;
    return count - std::exchange(refused_, count);
  }
  static bool IsPath(const string& path, const string& expected,
                     const Target& target) {
    if (expected != kThatName) return path == expected;
    if (target.names.empty()) return path == target.path;
    return std::ranges::find(target.names, path) != target.names.end();
  }

  void ExpectNoEffect() {
    EXPECT_EQ(Compare(before_, View(), {}), "");
    if (watched_ == Handle{}) return;
    EXPECT_EQ(fs().ReadAt(watched_, 0, 1 << 16).value_or("?"), kSecret);
  }

  TreeView before_;
  uint64_t refused_ = 0;  ///< operations so far
  Handle watched_{};      ///< the target, open since before
};
FOR_DRIVERS(PolicyTableTest, Needs::kStore);

TEST_P(PolicyTableTest, ByItsName) {
  RefusesEverything({.reach = kByName, .path = "kept/file"});
}

TEST_P(PolicyTableTest, ByItsNameWithAnotherErrno) {
  RefusesEverything(
      {.reach = kByName, .path = "full", .rule = "full", .error = "EDQUOT"});
}

TEST_P(PolicyTableTest, InAnotherCase) {
  RefusesEverything({.reach = kByName,
                     .path = "Sealed/FILE",
                     .rule = "sealed",
                     .error = "EROFS"});
}

TEST_P(PolicyTableTest, WithOddBytes) {
  RefusesEverything({.reach = kByName, .path = "kept/" + string(kOdd)});
}

TEST_P(PolicyTableTest, WithALongName) {
  RefusesEverything({.reach = kByName, .path = "kept/" + Long()});
}

TEST_P(PolicyTableTest, ByAHardLinkOfTheBase) {
  RefusesEverything({.reach = kByAnother,
                     .path = "other/tied",
                     .names = {"other/tied", "kept/tied"}});
}

TEST_P(PolicyTableTest, ByAHardLinkWhoseOtherNameNobodyHasLookedUp) {
  RefusesEverythingAtFirstSight({.reach = kByAnother,
                                 .path = "other/tied",
                                 .names = {"other/tied", "kept/tied"}});
}

TEST_P(PolicyTableTest, ByTheNameThatHasAHardLinkInTheBase) {
  RefusesEverything({.reach = kByName,
                     .path = "kept/tied",
                     .names = {"kept/tied", "other/tied"}});
}

TEST_P(PolicyTableTest, ByAHardLinkOfTheTransaction) {
  ASSERT_OK(fs().Link("kept/file", "other/made"));
  RefusesEverything({.reach = kByAnother,
                     .path = "other/made",
                     .names = {"other/made", "kept/file"}});
}

TEST_P(PolicyTableTest, ByASymlink) {
  RefusesEverything(
      {.reach = kBySymlink, .path = "soft", .names = {"kept/file"}});
}

TEST_P(PolicyTableTest, ByASymlinkToItsDirectory) {
  RefusesEverything({.reach = kByName,
                     .path = "soft-directory/file",
                     .names = {"kept/file"}});
}

TEST_P(PolicyTableTest, ASymlinkItself) {
  RefusesEverything({.reach = kLink, .path = "kept/soft"});
}

TEST_P(PolicyTableTest, InADirectoryThatWasMovedThere) {
  ASSERT_OK(fs().Rename("plain", "kept/moved", 0));
  RefusesEverything({.reach = kByName, .path = "kept/moved/f"});
}

TEST_P(PolicyTableTest, AfterAnExchange) {
  ASSERT_OK(fs().Rename("swapped", "kept/file", RENAME_EXCHANGE));
  RefusesEverything({.reach = kByName, .path = "kept/file"});
}

TEST_P(PolicyTableTest, MadeInTheTransaction) {
  ASSERT_OK(fs().WriteFile("kept/made", kSecret));
  ASSERT_OK(fs().SetXattr("kept/made", "user.kept", "1", 0));
  RefusesEverything({.reach = kByName, .path = "kept/made"});
}

TEST_P(PolicyTableTest, OpenBeforeTheRule) {
  RefusesEverything({.reach = kOpenBefore, .path = "kept/file"});
}

TEST_P(PolicyTableTest, OpenBeforeTheRuleByAHardLink) {
  RefusesEverything({.reach = kOpenBefore,
                     .path = "other/tied",
                     .names = {"other/tied", "kept/tied"}});
}

TEST_P(PolicyTableTest, ADirectory) {
  RefusesEverything({.reach = kDirectory, .path = "kept/empty"});
}

TEST_P(PolicyTableTest, ByADirectoryAbove) {
  RefusesEverything({.reach = kAbove, .path = "top/kept/file"});
}

TEST_P(PolicyTableTest, NotThereYet) {
  RefusesEverything({.reach = kNotThere, .path = "kept/new"});
}

TEST_P(PolicyTableTest, NotThereYetWithAnotherErrno) {
  RefusesEverything({.reach = kNotThere,
                     .path = "full-too",
                     .rule = "full",
                     .error = "EDQUOT"});
}

TEST_P(PolicyTableTest, NotThereYetInAnotherCase) {
  RefusesEverything({.reach = kNotThere,
                     .path = "Sealed/file",
                     .rule = "sealed",
                     .error = "EROFS"});
}

TEST_P(PolicyTableTest, NotThereYetWithOddBytes) {
  RefusesEverything({.reach = kNotThere, .path = "kept/new " + string(kOdd)});
}

TEST_P(PolicyTableTest, NotThereYetWithALongName) {
  RefusesEverything(
      {.reach = kNotThere, .path = "kept/" + string(255, '\xfe')});
}

TEST_P(PolicyTableTest, NotThereYetByASymlinkToItsDirectory) {
  RefusesEverything({.reach = kNotThere,
                     .path = "soft-directory/new",
                     .names = {"kept/new"}});
}

}  // namespace
}  // namespace txfs::testing

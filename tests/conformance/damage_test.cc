// A store of which any byte, file or directory may be somebody else's doing:
// commands end with an error, not by a signal, not never, and touch nothing
// that is outside of store and workspace.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "cli/locate/workspace_record.h"
#include "journal/support/checksum.h"
#include "journal/support/file.h"
#include "tests/conformance/conformance.h"
#include "tests/conformance/core_driver.h"
#include "tests/conformance/crash_rig.h"
#include "tests/conformance/process.h"
#include "tests/conformance/temp_dir.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

namespace fs = std::filesystem;
using Random = std::mt19937_64;

/// Small, so that a store is made in no time.
constexpr JournalOptions kJournal{.intake_bytes = 64 << 10,
                                  .background_drain = false};

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const fs::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

/// A workspace with a store that has something of everything.
class Victim {
 public:
  explicit Victim(bool half_way) : base_(scratch_.path() + "/ws") {
    umask(022);
    mkdir(base_.root().c_str(), 0755);
    base_.Directory("d");
    base_.File("d/f", "content of f");
    base_.File("d/g", "content of g");
    base_.HardLink("d/g", "d/h");
    base_.Symlink("d/f", "l");
    fs::create_directories(outside() + "/kept/deep");
    WriteFile(outside() + "/kept/deep/file", "precious");
    WriteFile(outside() + "/file", "precious");
    Record();
    Work();
    if (half_way) StopHalfWay();
    untouched_ = Outside();
  }

  [[nodiscard]] std::string workspace() const { return base_.root(); }
  [[nodiscard]] std::string store() const { return base_.root() + "/.txfs"; }
  [[nodiscard]] std::string outside() const {
    return scratch_.path() + "/outside";
  }
  [[nodiscard]] bool is_outside_untouched() const {
    return Outside() == untouched_;
  }

  /// What is in the store, but for locks that say nothing.
  [[nodiscard]] std::vector<fs::path> Entries() const {
    std::vector<fs::path> entries;
    for (const auto& entry : fs::recursive_directory_iterator(store())) {
      entries.push_back(entry.path());
    }
    std::ranges::sort(entries);
    return entries;
  }

 private:
  using View = std::map<std::string, std::string>;

  /// So that commands take the store for the user's own.
  void Record() const {
    setenv("XDG_STATE_HOME", (scratch_.path() + "/state").c_str(), 1);
    const auto root = OpenAt(AT_FDCWD, base_.root(), O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(root.has_value());
    ASSERT_OK(cli::MakeRecord(root->get(), base_.root(), store()));
  }

  void Work() {
    auto started = CoreDriver::Start(base_.root(),
                                     {.journal = kJournal, .collects = false});
    ASSERT_TRUE(started.has_value());
    Driver& driver = **started;
    ASSERT_OK(driver.WriteFile("d/f", "other content"));
    ASSERT_OK(driver.WriteFile("new", std::string(40'000, 'n')));
    ASSERT_OK(driver.Unlink("d/h"));
    ASSERT_OK(driver.Commit());
    ASSERT_OK(driver.Mkdir("e", 0755));
    ASSERT_OK(driver.WriteFile("e/large", std::string(300'000, 'x')));
    ASSERT_OK(driver.MakeSavepoint("sp"));
    for (int i = 0; i < 40; ++i) {
      ASSERT_OK(driver.WriteFile("e/" + std::to_string(i), std::to_string(i)));
    }
    ASSERT_OK(driver.Rename("d/f", "e/f", 0));
    ASSERT_OK(driver.Unlink("new"));
    ASSERT_OK(driver.Symlink("f", "e/link"));
    ASSERT_OK(driver.PatchFile("d/g", 2, "**"));
    ASSERT_OK(driver.Chmod("d", 0700));
    started->reset();
  }

  /// As a commit does whose process died behind the point of no return.
  void StopHalfWay() const {
    const WorkspaceOptions options{.path = base_.root(),
                                   .store = store(),
                                   .collects = false,
                                   .journal = kJournal};
    const auto commit = [](Workspace& workspace) -> Status {
      TRY(workspace.Commit({}));
      return {};
    };
    // All victims come to it at about the same point.
    constexpr uint64_t kStride = 10;
    static uint64_t before = kStride;
    uint64_t point = before;
    for (; !fs::exists(store() + "/intent"); point += kStride) {
      const Ending ending = RunAndCrash(options, commit, point, false);
      ASSERT_EQ(ending, Ending::kCrashed);
    }
    before = std::max(point, 4 * kStride) - 3 * kStride;
  }

  [[nodiscard]] View Outside() const {
    View view;
    for (const auto& entry : fs::recursive_directory_iterator(outside())) {
      struct stat st{};
      lstat(entry.path().c_str(), &st);
      // Not the number of links: the damage may be one, which goes again.
      view[entry.path()] = std::to_string(st.st_mode) + " " +
                           std::to_string(st.st_mtim.tv_nsec) + " " +
                           (S_ISREG(st.st_mode) ? ReadFile(entry.path()) : "");
    }
    return view;
  }

  const TempDir scratch_{MemoryDirectory()};
  BaseTree base_;
  View untouched_;
};

// --- damage ----------------------------------------------------------------

size_t Below(Random& random, size_t limit) {
  return limit == 0
             ? 0
             : std::uniform_int_distribution<size_t>(0, limit - 1)(random);
}

/// Somewhere in `content` where there is something.
size_t Somewhere(Random& random, const std::string& content) {
  size_t at = Below(random, content.size());
  for (int i = 0; i < 2000 && content[at] == '\0'; ++i) {
    at = Below(random, content.size());
  }
  return at;
}

void Flip(Random& random, const fs::path& path) {
  std::string content = ReadFile(path);
  if (content.empty()) return;
  for (size_t i = Below(random, 4) + 1; i > 0; --i) {
    const size_t at = Somewhere(random, content);
    constexpr std::array<char, 5> kOdd = {0, 1, 127, '\x80', '\xff'};
    content[at] =
        Below(random, 2) == 0
            ? kOdd[Below(random, kOdd.size())]
            : static_cast<char>(content[at] ^ (1 << Below(random, 8)));
  }
  // Most files end in a checksum: whoever forges one puts it right.
  if (content.starts_with("TXFS") && content.size() > 16 &&
      path.filename() != "intake" && path.filename() != "preimages") {
    const size_t end = content.size() - sizeof(uint64_t);
    const uint64_t sum = Checksum(AsBytes(content).first(end));
    std::memcpy(content.data() + end, &sum, sizeof sum);
  }
  // In place: some files are found by their inode numbers.
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file << content;
}

void Resize(Random& random, const fs::path& path) {
  const size_t size = fs::file_size(path);
  constexpr size_t kHuge = size_t{1} << 40;
  const std::array<size_t, 4> sizes = {0, Below(random, size), size + 4096,
                                       kHuge};
  std::error_code ignored;
  fs::resize_file(path, sizes[Below(random, sizes.size())], ignored);
}

void Replace(Random& random, const fs::path& path, const std::string& outside) {
  const bool is_directory = fs::is_directory(path);
  fs::remove_all(path);
  switch (Below(random, 6)) {
    case 0:
    case 1:
      return fs::create_symlink(outside + (is_directory ? "/kept" : "/file"),
                                path);
    case 2:
      mkfifo(path.c_str(), 0600);
      return;
    case 3:
      if (is_directory) return WriteFile(path, "no directory");
      fs::create_directories(path / "sub");
      return;
    case 4:
      if (is_directory) return;
      return fs::create_hard_link(outside + "/file", path);
    default:
      return;  // it is gone
  }
}

/// A temporary file that is to be written to, somewhere else.
void Plant(Random& random, const fs::path& path, const std::string& outside) {
  const fs::path temporary = path.string() + ".new";
  if (fs::exists(fs::symlink_status(temporary))) return;
  switch (Below(random, 3)) {
    case 0:
      return fs::create_symlink(outside + "/file", temporary);
    case 1:
      return fs::create_hard_link(outside + "/file", temporary);
    default:
      mkfifo(temporary.c_str(), 0600);
  }
}

std::string Damage(Random& random, const Victim& victim) {
  const std::vector<fs::path> all = victim.Entries();
  std::vector<fs::path> tables;
  std::ranges::copy_if(all, std::back_inserter(tables), [](const auto& path) {
    return path.filename() == "data.mdb" || path.filename() == "intake" ||
           path.filename() == "intent";
  });
  const bool in_tables = Below(random, 3) == 0 && !tables.empty();
  const auto& from = in_tables ? tables : all;
  const fs::path path = from[Below(random, from.size())];
  const bool is_file = fs::is_regular_file(fs::symlink_status(path));
  const size_t kind = Below(random, in_tables ? 6 : 10);
  std::string what = path.string().substr(victim.store().size() + 1);
  if (kind < 5 && is_file) {
    Flip(random, path);
    return what + " with other bytes";
  }
  if (kind == 5 && is_file) {
    Resize(random, path);
    return what + " with another size";
  }
  if (kind == 6 && is_file) {
    Plant(random, path, victim.outside());
    return what + ".new";
  }
  Replace(random, path, victim.outside());
  return what + " replaced";
}

// --- commands --------------------------------------------------------------

/// Nothing here takes long.
constexpr const char* kSeconds = "30";

void RunCommands(const Victim& victim, const std::string& what) {
  const std::vector<std::vector<std::string>> commands = {
      {"list"},   {"status"}, {"diff"}, {"log"},     {"show"},
      {"fsck"},   {"commit"}, {"undo"}, {"list"},    {"gc"},
      {"umount"}, {"fsck"},   {"undo"}, {"discard"},
  };
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> words = {
        "timeout",          "-s",         "KILL",
        kSeconds,           TxfsBinary(), "-C",
        victim.workspace(), "--store",    victim.store()};
    words.insert(words.end(), command.begin(), command.end());
    const CommandResult result = RunCommand(words);
    EXPECT_LT(result.exit_code, 124)
        << command.front() << " ended by a signal: " << what << "\n"
        << result.errors;
    EXPECT_TRUE(victim.is_outside_untouched())
        << command.front() << " changed something else: " << what;
    if (::testing::Test::HasFailure()) return;
  }
}

/// What a daemon does: in a process of its own, which may die.
void Serve(const Victim& victim, const std::string& what) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    auto started = CoreDriver::Start(victim.workspace(),
                                     {.journal = kJournal, .collects = false});
    if (started) {
      std::ignore = ViewTree(**started);
      std::ignore = (*started)->WriteFile("e/large", "short");
      std::ignore = (*started)->Rename("e", "e2", 0);
      std::ignore = (*started)->RemoveRecursively("e2");
      std::ignore = (*started)->Rollback("sp");
      std::ignore = (*started)->Settle();
      std::ignore = (*started)->Remount();
      started->reset();
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_FALSE(WIFSIGNALED(status))
      << "served, and ended by signal " << WTERMSIG(status) << ": " << what;
  EXPECT_TRUE(victim.is_outside_untouched())
      << "served, and changed something else: " << what;
}

class DamageTest : public ::testing::TestWithParam<bool> {};

TEST_P(DamageTest, CommandsEndWithAnErrorAndTouchNothingElse) {
  const uint64_t seed = FirstSeed();
  for (int i = 0; i < Scaled(12) && !HasFailure(); ++i) {
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed + i));
    Random random(seed + i);
    const Victim victim(GetParam());
    RunCommands(victim, Damage(random, victim));
  }
}

TEST_P(DamageTest, ADaemonRefusesToServeIt) {
  const uint64_t seed = FirstSeed();
  for (int i = 0; i < Scaled(40) && !HasFailure(); ++i) {
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed + i));
    Random random(seed + i);
    const Victim victim(GetParam());
    Serve(victim, Damage(random, victim));
  }
}

INSTANTIATE_TEST_SUITE_P(Intent, DamageTest, ::testing::Bool());

/// The links that would cost most.
TEST(StoreLinksTest, NoLinkLeadsOutOfAStore) {
  for (const char* name :
       {"trash", "history", "txn", "vault", "blank", "lock", "commit.lock",
        "workspace.new", "reserved.new", "intent", "FORMAT", "blank.lock"}) {
    Victim victim(false);
    const std::string path = victim.store() + "/" + name;
    const bool is_directory = fs::is_directory(path);
    fs::remove_all(path);
    fs::create_symlink(
        victim.outside() + (is_directory || *name == 't' ? "/kept" : "/file"),
        path);
    RunCommands(victim, name);
    Serve(victim, name);
  }
}

/// Where a file is written anew, of each entry of a store; several at a time,
/// as stores take a while.
TEST(StoreLinksTest, NoLinkLeadsOutOfWhatIsInAStore) {
  constexpr size_t kStores = 8;
  for (size_t store = 0; store < kStores; ++store) {
    const Victim victim(false);
    const auto entries = victim.Entries();
    for (size_t i = store / 2; i < entries.size(); i += kStores / 2) {
      if (!fs::is_regular_file(entries[i])) continue;
      const fs::path temporary = entries[i].string() + ".new";
      if (store % 2 == 0) {
        fs::create_symlink(victim.outside() + "/file", temporary);
      } else {
        fs::create_hard_link(victim.outside() + "/file", temporary);
      }
    }
    RunCommands(victim, "store " + std::to_string(store));
  }
}

}  // namespace
}  // namespace txfs::testing

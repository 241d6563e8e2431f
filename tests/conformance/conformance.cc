#include "tests/conformance/conformance.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "tests/conformance/core_driver.h"
#include "tests/conformance/mount_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/process.h"
#include "tests/conformance/sound.h"

namespace txfs::testing {
namespace {

DriverKind CoreKind(const std::string& name, const CoreOptions& options) {
  return {
      .name = name,
      .start =
          [options](const TempDir& scratch) -> Result<std::unique_ptr<Driver>> {
        return TRY(CoreDriver::Start(scratch.path() + "/ws", options));
      }};
}

DriverKind PlainKind() {
  return {
      .name = "PlainDirectory",
      .kernel = true,
      .plain = true,
      .start = [](const TempDir& scratch) -> Result<std::unique_ptr<Driver>> {
        return std::make_unique<PosixDriver>(scratch.path() + "/ws");
      }};
}

DriverKind MountKind() {
  return {.name = "Mount", .kernel = true, .start = [](const TempDir& scratch) {
            return MountDriver::Start(scratch.path() + "/ws",
                                      scratch.path() + "/mnt");
          }};
}

/// The base's root has the store in it, which changes its own attributes.
void IgnoreRootOf(TreeView& view) { view.erase(""); }

}  // namespace

void PrintTo(const DriverKind& kind, std::ostream* out) { *out << kind.name; }

std::vector<DriverKind> DriverKinds(Needs needs) {
  std::vector<DriverKind> kinds{
      CoreKind("Core", {.journal = {}, .keep_lookups = true}),
      CoreKind("CoreForgetful",
               {.journal = {.background_drain = false}, .keep_lookups = false}),
      PlainKind()};
  if (!TxfsBinary().empty() && access("/dev/fuse", R_OK | W_OK) == 0) {
    kinds.push_back(MountKind());
  }
  std::erase_if(kinds, [needs](const DriverKind& kind) {
    return (needs == Needs::kKernel && !kind.kernel) ||
           (needs == Needs::kStore && kind.plain);
  });
  return kinds;
}

bool CanMount() {
  return std::ranges::any_of(
      DriverKinds(Needs::kKernel),
      [](const DriverKind& kind) { return !kind.plain; });
}

ConformanceTest::ConformanceTest() : base_(scratch_.path() + "/ws") {
  umask(022);
  mkdir(base_.root().c_str(), 0755);
}

Driver& ConformanceTest::fs() {
  if (driver_) return *driver_;
  base_.SetTimes();
  auto started = GetParam().start(scratch_);
  if (!started) {
    // Without a driver no test can go on, wherever it is.
    throw std::runtime_error(started.error().ToString());
  }
  driver_ = std::move(*started);
  if (checks_trees_) base_view_ = ViewBase();
  return *driver_;
}

struct stat ConformanceTest::St(const std::string& path) {
  const auto st = fs().Stat(path);
  EXPECT_TRUE(st.has_value()) << path << ": " << ErrnoName(ErrnoOf(st));
  struct stat none{};
  return st.value_or(none);
}

std::string ConformanceTest::Content(const std::string& path) {
  auto content = fs().ReadFile(path);
  EXPECT_TRUE(content.has_value())
      << path << ": " << ErrnoName(ErrnoOf(content));
  return std::move(content).value_or("");
}

std::vector<std::string> ConformanceTest::Names(const std::string& path) {
  auto names = fs().Names(path);
  EXPECT_TRUE(names.has_value()) << path << ": " << ErrnoName(ErrnoOf(names));
  return std::move(names).value_or(std::vector<std::string>{});
}

Handle ConformanceTest::Open(const std::string& path, int flags) {
  const auto handle = fs().Open(path, flags, 0644);
  EXPECT_TRUE(handle.has_value()) << path << ": " << ErrnoName(ErrnoOf(handle));
  return handle.value_or(Handle{});
}

void ConformanceTest::Commit() {
  ASSERT_OK(fs().Commit());
  AcceptBase();
}

void ConformanceTest::AcceptBase() {
  base_view_ = ViewBase();
  keeps_numbers_ = false;
}

TreeView ConformanceTest::ViewBase() {
  PosixDriver plain(base_.root());
  auto view = ViewTree(plain);
  EXPECT_TRUE(view.has_value()) << view.error().ToString();
  return std::move(view).value_or(TreeView{});
}

void ConformanceTest::CheckBaseIsUntouched() {
  TreeView now = ViewBase(), expected = base_view_;
  IgnoreRootOf(now);
  IgnoreRootOf(expected);
  EXPECT_EQ(Compare(expected, now, {}), "")
      << "the base was written before commit";
}

void ConformanceTest::CheckStatus() {
  auto* const core = dynamic_cast<CoreDriver*>(driver_.get());
  if (core == nullptr) return;
  EXPECT_EQ(FindWrongStatus(core->workspace()), "");
}

void ConformanceTest::CheckRemountChangesNothing(const TreeView& before) {
  ASSERT_OK(fs().Remount());
  auto after = ViewTree(fs());
  ASSERT_OK(after);
  // StoreTest looks at the root's: here it would only repeat itself.
  after->at("").ctime = before.at("").ctime;
  EXPECT_EQ(Compare(before, *after, {.ino = keeps_numbers_}), "")
      << "remount changed the tree";
}

void ConformanceTest::CheckCommitMakesTheBase(const TreeView& before) {
  ASSERT_OK(fs().Commit());
  const auto after = ViewTree(fs());
  ASSERT_OK(after);
  EXPECT_EQ(Compare(before, *after, {.ino = false, .ctime = false}), "")
      << "commit changed the view";
  // The trash, which may hold links to files of the base, is gone after this.
  ASSERT_OK(fs().Remount());
  TreeView now = ViewBase(), expected = before;
  IgnoreRootOf(now);
  IgnoreRootOf(expected);
  EXPECT_EQ(Compare(expected, now, {.ino = false, .ctime = false}), "")
      << "commit made another tree";
}

void ConformanceTest::TearDown() {
  if (!driver_) return;
  if (geteuid() == 0) fs().ActAs(0, 0);
  if (!checks_trees_ || HasFatalFailure() || IsSkipped()) return;
  const auto before = ViewTree(fs());
  ASSERT_OK(before);
  if (!fs().has_base()) return;
  CheckBaseIsUntouched();
  CheckStatus();
  CheckRemountChangesNothing(*before);
  CheckStatus();
  CheckBaseIsUntouched();
  EXPECT_EQ(FindProblems(base_.root()), "") << "the store is not sound";
  if (commits_ && !HasFailure()) CheckCommitMakesTheBase(*before);
}

}  // namespace txfs::testing

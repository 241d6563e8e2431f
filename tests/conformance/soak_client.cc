#include "tests/conformance/soak_client.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>

#include <sstream>
#include <utility>

#include "tests/conformance/conformance.h"
#include "tests/conformance/interrupted.h"
#include "tests/conformance/posix_driver.h"

namespace txfs::testing {
namespace {

/// Content that has a spool segment of its own.
constexpr uint32_t kManyBytes = 2 << 20;
constexpr size_t kStoryLength = 100;

/// How often, of so many steps.
constexpr uint32_t kOneInLarge = 40;
constexpr uint32_t kOneInShared = 8;
constexpr uint32_t kOneInChangesDirectory = 25;

bool Writes(StepKind kind) {
  return kind == StepKind::kOverwrite || kind == StepKind::kPatch ||
         kind == StepKind::kAppend;
}

std::string Descriptor(Handle handle) {
  return "/proc/self/fd/" + std::to_string(static_cast<int>(handle));
}

}  // namespace

void Gate::Close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return waiting_ == members_; });
}

void Gate::Open() {
  const std::lock_guard lock(mutex_);
  closed_ = false;
  changed_.notify_all();
}

void Gate::Dismiss() {
  const std::lock_guard lock(mutex_);
  dismissed_ = true;
  changed_.notify_all();
}

bool Gate::Pass() {
  std::unique_lock lock(mutex_);
  if (closed_) {
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return !closed_ || dismissed_; });
    --waiting_;
  }
  return !dismissed_;
}

void Gate::AwaitClosing() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || dismissed_; });
}

Step SoakSteps::Next() {
  Step step =
      AnyStep(StepModes(/*kernel=*/true))(rc::Random(random_()), kStepSize)
          .value();
  if (Writes(step.kind) && OneIn(kOneInLarge)) {
    step.length = static_cast<uint32_t>(random_() % kManyBytes);
  }
  MaybeShare(step.path);
  MaybeShare(step.other);
  return step;
}

void SoakSteps::MaybeShare(std::string& path) {
  if (!shared_prefix_.empty() && OneIn(kOneInShared)) {
    path = "../" + shared_prefix_ + path;
  }
}

SoakClient::SoakClient(int number, std::string mountpoint, SoakModel& model,
                       uint64_t seed)
    : number_(number),
      own_(model.tops()[number]),
      shared_prefix_("shared/" + std::to_string(number) + "-"),
      mountpoint_(std::move(mountpoint)),
      model_(model),
      random_(seed, shared_prefix_),
      home_(At(std::make_unique<PosixDriver>(mountpoint_ + "/" + own_),
               model.Open(model.root() + "/" + own_))) {}

SoakClient::~SoakClient() { DropAll(); }

SoakClient::Place SoakClient::At(std::unique_ptr<Driver> mount,
                                 std::unique_ptr<Driver> model) {
  Place place{.mount = std::move(mount),
              .model = std::move(model),
              .runner = nullptr,
              .model_runner = nullptr,
              .mount_dir = {},
              .model_dir = {}};
  place.runner = std::make_unique<StepRunner>(*place.mount);
  place.model_runner = std::make_unique<StepRunner>(*place.model);
  return place;
}

bool SoakClient::Step(bool may_be_compound) {
  const ::txfs::testing::Step step = random_.Next();
  if (IsCompound(step) && !may_be_compound) return true;
  // What is everybody's is not below a working directory.
  const bool away = away_ && random_.OneIn(2) && !step.path.starts_with("..") &&
                    !step.other.starts_with("..");
  Place& place = away ? *away_ : home_;
  const std::string outcome = place.runner->Run(step);
  std::ostringstream line;
  line << (away ? "(away) " : "") << step << ": " << outcome;
  story_.push_back(line.str());
  if (story_.size() > kStoryLength) story_.pop_front();
  ++steps_;
  // A write of a part of a page reads the page first; when that is what the
  // death cuts off, the kernel says EIO.
  if (IsDeath(outcome) || (outcome == "EIO" && IsGone(*home_.mount))) {
    in_flight_ = {.step = step, .away = away};
    return false;
  }
  EXPECT_EQ(outcome, place.model_runner->Run(step)) << Story();
  if (random_.OneIn(kOneInChangesDirectory)) ChangeDirectory(step.other);
  return true;
}

void SoakClient::ChangeDirectory(const std::string& path) {
  const auto mount_dir = home_.mount->OpenDir(path);
  const auto model_dir = home_.model->OpenDir(path);
  const auto outcome = ErrnoOf(mount_dir);
  if (mount_dir && model_dir) {
    Leave();
    away_ = At(std::make_unique<PosixDriver>(Descriptor(*mount_dir)),
               model_.Open(Descriptor(*model_dir)));
    away_->mount_dir = *mount_dir;
    away_->model_dir = *model_dir;
    story_.push_back("cd " + path);
    return;
  }
  if (mount_dir) (void)home_.mount->CloseDir(*mount_dir);
  if (model_dir) (void)home_.model->CloseDir(*model_dir);
  if (outcome == ErrnoOf(model_dir)) return;
  // What a death cuts off may end in any way.
  if (IsGone(*home_.mount)) return;
  EXPECT_EQ(ErrnoName(outcome), ErrnoName(ErrnoOf(model_dir)))
      << "cd " << path << '\n'
      << OnTheWay(path) << Story();
}

/// What there is now at each directory of `path`, in the mount and in the
/// model, and how opening it ends now.
std::string SoakClient::OnTheWay(const std::string& path) const {
  const auto describe = [](Driver& driver, const std::string& at) {
    const auto st = driver.Stat(at);
    if (!st) return ErrnoName(ErrnoOf(st));
    std::ostringstream text;
    text << "ino " << st->st_ino << " mode " << std::oct << st->st_mode;
    if (S_ISLNK(st->st_mode))
      text << " -> " << driver.Readlink(at).value_or("?");
    return text.str();
  };
  std::string text;
  for (size_t end = path.find('/'); true; end = path.find('/', end + 1)) {
    const std::string at = path.substr(0, end);
    text += "  " + at + ": " + describe(*home_.mount, at) +
            "; the model: " + describe(*home_.model, at) + '\n';
    if (end == std::string::npos) break;
  }
  const auto again = home_.mount->OpenDir(path);
  if (again) (void)home_.mount->CloseDir(*again);
  return text + "  again: " + ErrnoName(ErrnoOf(again)) + '\n';
}

void SoakClient::Leave() {
  if (!away_) return;
  away_->runner->DropAll();
  away_->model_runner->DropAll();
  (void)home_.mount->CloseDir(*away_->mount_dir);
  (void)home_.model->CloseDir(*away_->model_dir);
  away_.reset();
}

void SoakClient::LeaveLostDirectory() {
  if (!away_) return;
  const auto st = home_.model->StatOf(*away_->model_dir);
  if (!st || st->st_nlink == 0) Leave();
}

void SoakClient::DropAll() {
  Leave();
  home_.runner->DropAll();
  home_.model_runner->DropAll();
}

void SoakClient::ForgetMount() {
  home_.runner->DropAll();
  if (away_) away_->runner->DropAll();
}

TreeView SoakClient::Mine(const TreeView& tree) const {
  TreeView mine;
  for (const auto& [path, file] : tree) {
    if (path == own_ || path.starts_with(own_ + "/") ||
        path.starts_with(shared_prefix_)) {
      mine[path] = file;
    }
  }
  return mine;
}

std::string SoakClient::Differences(const TreeView& actual) {
  const auto expected = ViewTops(model_.root(), model_.tops());
  if (!expected) return expected.error().ToString();
  return Compare(Mine(*expected), actual,
                 {.ino = false,
                  .ctime = false,
                  .mtime = false,
                  .fixed_before = kSoakPast});
}

void SoakClient::SettleInFlight(const TreeView& actual) {
  const auto in_flight = std::exchange(in_flight_, std::nullopt);
  if (!in_flight) return;
  const TreeView mine = Mine(actual);
  std::string differences = Differences(mine);
  if (differences.empty()) return;
  Place& place = in_flight->away ? *away_ : home_;
  for (const auto& step : Prefixes(in_flight->step, *place.model)) {
    (void)place.model_runner->Run(step);
    differences = Differences(mine);
    if (differences.empty()) return;
  }
  ADD_FAILURE() << "client " << number_ << " after a kill, with the step in "
                << "flight:\n"
                << differences << Story();
}

std::string SoakClient::Story() const {
  std::string text =
      "the last steps of client " + std::to_string(number_) + ":\n";
  for (const std::string& line : story_) text += "  " + line + "\n";
  return text;
}

}  // namespace txfs::testing

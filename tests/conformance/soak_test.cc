#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/conformance/conformance.h"
#include "tests/conformance/interrupted.h"
#include "tests/conformance/mount_driver.h"
#include "tests/conformance/posix_driver.h"
#include "tests/conformance/process.h"
#include "tests/conformance/soak_client.h"
#include "tests/conformance/soak_model.h"
#include "tests/conformance/sound.h"
#include "tests/conformance/temp_dir.h"
#include "tests/conformance/watchdog.h"
#include "tests/repeat.h"

namespace txfs::testing {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kClients = 3;
constexpr int kSeconds = 12;
/// What takes a second or two, on a machine that is busy with other things, may
/// take so long.
constexpr std::chrono::minutes kHang{5};
/// The part of the time in which the daemon is killed or ended now and then. In
/// the rest one daemon lives on, so that it shows whether it grows.
constexpr double kStormy = 0.45;
/// Image of the model as the base is.
constexpr const char* kBase = "base";
/// What is random may remove most of what there is.
constexpr const char* kLimit = "txfs-mass-deletion";
/// Image of what a partial discard left.
constexpr const char* kPart = "part";
/// How many commits are remembered for undo.
constexpr size_t kMaxUndo = 5;
/// How many stay: those, undos of them, and what siblings committed since.
constexpr size_t kMaxKept = 40;
constexpr size_t kHistoryLength = 20;
/// Of what a command says, bytes that a failure shows.
constexpr size_t kMostText = 20'000;
/// What a daemon may grow by: the journals of ended transactions of which
/// something is open, and while it is young caches that fill.
[[maybe_unused]] constexpr uint64_t kRssSlack = 8 << 20;
[[maybe_unused]] constexpr uint64_t kYoungRssSlack = 24 << 20;
/// 256 files of the base, segments, sockets, LMDB; and how much more of them
/// there may be late than early.
constexpr size_t kMaxDescriptors = 400;
constexpr size_t kDescriptorSlack = 64;
/// A daemon with so many samples is not young.
constexpr size_t kManySamples = 60;

const std::vector<std::string> kTops = {"c0", "c1", "c2", "shared"};
constexpr const char* kShared = "shared/";
/// Where only a sibling works.
const std::vector<std::string> kSiblingTops = {"sibling"};

/// One who works where no model knows what is to be, and who is not stopped
/// for commits, savepoints, rollbacks and discards: they and its work meet.
class Unruly {
 public:
  Unruly(const std::string& mountpoint, uint64_t seed)
      : random_(seed, ""), driver_(mountpoint + "/unruly"), runner_(driver_) {}

  /// False when the mount died meanwhile.
  bool Step() {
    const auto step = random_.Next();
    const std::string outcome = runner_.Run(step);
    ++steps_;
    if (IsDeath(outcome)) return false;
    if (outcome == "EIO") {
      if (IsGone(driver_)) return false;
      ADD_FAILURE() << "unruly: " << step << ": " << outcome;
    }
    return true;
  }
  void DropAll() { runner_.DropAll(); }
  [[nodiscard]] uint64_t steps() const { return steps_; }

 private:
  SoakSteps random_;
  PosixDriver driver_;
  StepRunner runner_;
  uint64_t steps_ = 0;
};

/// Transactions on the same workspace that live for a moment beside the one
/// that all others work in: each changes what nobody else does, and is
/// committed or discarded.
class Sibling {
 public:
  Sibling(std::string base, std::string mountpoint, uint64_t seed)
      : base_(std::move(base)),
        mountpoint_(std::move(mountpoint)),
        random_(seed, "") {
    mkdir(mountpoint_.c_str(), 0755);
  }

  /// What has become of it must at once be in the base, and in `other`, the
  /// mount of another transaction.
  void Live(const std::string& other, bool commits) {
    Txfs({"mount", base_, mountpoint_, "--name", "sibling"});
    const auto before = ViewTops(base_, kSiblingTops);
    Work();
    const auto after = ViewTops(mountpoint_, kSiblingTops);
    if (commits) {
      Txfs({"-C", mountpoint_, "commit", "--accept", kLimit});
    } else {
      Txfs({"-C", mountpoint_, "discard"});
    }
    ASSERT_TRUE(before && after);
    for (const std::string& root : {base_, other, mountpoint_}) {
      const auto now = ViewTops(root, kSiblingTops);
      ASSERT_TRUE(now.has_value()) << now.error().ToString();
      EXPECT_EQ(Compare(commits ? *after : *before, *now,
                        {.ino = false, .ctime = false}),
                "")
          << root << (commits ? ": commit" : ": discard") << " of a sibling";
    }
    Txfs({"umount", mountpoint_});
  }

 private:
  void Work() {
    PosixDriver driver(mountpoint_ + "/" + kSiblingTops.front());
    StepRunner runner(driver);
    for (int steps = 0; steps < kSteps; ++steps) {
      const auto step = random_.Next();
      const std::string outcome = runner.Run(step);
      EXPECT_FALSE(IsDeath(outcome) || outcome == "EIO")
          << "sibling: " << step << ": " << outcome;
    }
    runner.DropAll();
  }
  static void Txfs(std::vector<std::string> words) {
    words.insert(words.begin(), TxfsBinary());
    const CommandResult done = RunCommand(words);
    EXPECT_EQ(done.exit_code, 0) << words[1] << ": " << done.errors;
  }

  static constexpr int kSteps = 20;
  const std::string base_, mountpoint_;
  SoakSteps random_;
};

/// Sizes of the daemon over time.
class Growth {
 public:
  void Sample(pid_t daemon) {
    std::ifstream status("/proc/" + std::to_string(daemon) + "/status");
    uint64_t kib = 0;
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmRSS:"))
        kib = std::strtoull(&line[6], nullptr, 10);
    }
    rss_.push_back(kib << 10);
    std::error_code error;
    const std::filesystem::directory_iterator files(
        "/proc/" + std::to_string(daemon) + "/fd", error);
    descriptors_.push_back(
        static_cast<size_t>(std::distance(begin(files), end(files))));
  }
  void DemandFlat() const {
    if (rss_.size() < 6) return;
    EXPECT_LE(MaxDescriptors(), kMaxDescriptors);
    const bool young = rss_.size() < kManySamples;
    if (!young) {
      EXPECT_LE(Late(descriptors_), Early(descriptors_) + kDescriptorSlack)
          << "the daemon's descriptors become more";
    }
#ifndef TXFS_SANITIZED
    EXPECT_LE(Late(rss_), Early(rss_) + (young ? kYoungRssSlack : kRssSlack))
        << "the daemon's memory grows";
#endif
  }
  [[nodiscard]] uint64_t MaxRss() const {
    return rss_.empty() ? 0 : *std::ranges::max_element(rss_);
  }
  [[nodiscard]] size_t MaxDescriptors() const {
    return descriptors_.empty() ? 0 : *std::ranges::max_element(descriptors_);
  }
  /// Some of them, in MiB and in number.
  [[nodiscard]] std::string Course() const {
    std::string text;
    const size_t step = std::max<size_t>(1, rss_.size() / 12);
    for (size_t i = 0; i < rss_.size(); i += step) {
      text += " " + std::to_string(rss_[i] >> 20) + "/" +
              std::to_string(descriptors_[i]);
    }
    return text;
  }

 private:
  /// The most in the first third, and in the last.
  template <class T>
  static T Early(const std::vector<T>& samples) {
    const auto third = static_cast<ptrdiff_t>(samples.size() / 3);
    return *std::max_element(samples.begin(), samples.begin() + third);
  }
  template <class T>
  static T Late(const std::vector<T>& samples) {
    const auto third = static_cast<ptrdiff_t>(samples.size() / 3);
    return *std::max_element(samples.end() - third, samples.end());
  }

  std::vector<uint64_t> rss_;
  std::vector<size_t> descriptors_;
};

/// The string that is the value of `key` in `json`.
std::string StringOf(const std::string& json, const std::string& key) {
  const size_t name = json.find("\"" + key + "\"");
  if (name == std::string::npos) return "";
  const size_t open = json.find('"', json.find(':', name));
  return json.substr(open + 1, json.find('"', open + 1) - open - 1);
}

/// Of names, attributes and directories. Only root may; else nothing happens.
void DropKernelCaches() { std::ofstream("/proc/sys/vm/drop_caches") << "2\n"; }

/// A workspace with a mount, those who work in it, and all that is done to it
/// meanwhile.
class Soak {
 public:
  Soak(uint64_t seed, std::chrono::seconds length);
  ~Soak();
  Status Mount();
  void Run();

 private:
  /// A commit that can be undone, with the base of before.
  struct Commit {
    std::string id, image;
    TreeView base;
  };
  using Control = void (Soak::*)();

  void Work(int client);
  void WorkUnruly();
  void Pause() { gate_.Close(); }
  void PauseAll();
  void ResumeAll();
  void DropClients();
  void DropAll();
  void LeaveLostDirectories();
  void Round(bool stormy);

  // Done while the clients pause.
  void MakeSavepoint();
  void Rollback();
  void Discard();
  void CommitAll();
  void CommitPart();
  void DiscardPart();
  void Undo();
  void Remount();
  void Collect();
  void Fsck();
  void SampleGrowth();
  // Done while they work.
  void CommitMeanwhile();
  void LiveSibling();
  void Kill();
  /// Kills the daemon while it does one of the first.
  void KillWithin();

  std::string TryCommit();
  /// Somewhere the transaction changed something; empty: nowhere.
  std::string AnyChange();
  /// Does `command` to what is at and below `path`; false when there is nothing
  /// to do. The directories of clients whose path it is not stay what they are.
  bool EndPart(const std::string& command, const std::string& path);
  void TakeBase();
  void RestoreModel(const std::string& image);
  /// The base is as the model.
  void SaveBase();
  void GoBackTo(const Commit& commit, const std::string& undo_id);
  void MountAgain();
  void Check(const std::string& when);
  void CheckNothingIsStale(const std::string& when);
  void CheckNoConflicts(const std::string& when);
  /// Prints what was done, and what tells where a difference comes from.
  void TellStory();
  void TellWhatIsCached() const;
  void LookCloser();
  std::string DifferencesFromModel();
  void CheckBase(const std::string& when);
  void CheckCommitted();
  TreeView BaseView();
  void Demand(const std::string& what, const Status& done);
  void Count(const std::string& what) {
    watchdog_.Begin(what);
    ++counts_[what];
    history_.push_back(what);
    if (history_.size() > kHistoryLength) history_.pop_front();
  }
  void Report() const;

  MountDriver& daemon() { return static_cast<MountDriver&>(*driver_); }
  /// At random below `end`; 0 where that is 0.
  uint64_t Number(uint64_t end) {
    return random_() % std::max(end, uint64_t{1});
  }

  std::mt19937_64 random_;
  const SteadyClock::time_point start_ = SteadyClock::now();
  const std::chrono::seconds length_;
  TempDir scratch_;
  Watchdog watchdog_{scratch_.path(), kHang};
  BaseTree base_;
  const std::string mountpoint_;
  SoakModel model_;
  std::unique_ptr<Driver> driver_;
  std::vector<std::unique_ptr<SoakClient>> clients_;
  std::unique_ptr<Unruly> unruly_;
  std::unique_ptr<Sibling> sibling_;
  Gate gate_, unruly_gate_;
  std::vector<std::thread> threads_;
  std::atomic<bool> may_be_compound_ = true;

  std::vector<std::string> savepoints_;
  std::vector<Commit> commits_;
  TreeView base_view_;  // as it is now, all of it
  /// The image kBase was not made of the model: it does not know which files of
  /// the two are the same, and so not what open ones go back to.
  bool base_is_apart_ = false;
  uint64_t names_ = 0;
  Growth growth_;
  std::map<std::string, int> counts_;
  std::deque<std::string> history_;   ///< what was done last
  std::string last_commit_;           ///< or undo
  std::vector<std::string> changes_;  ///< when a part was chosen last
};

Soak::Soak(uint64_t seed, std::chrono::seconds length)
    : random_(seed),
      length_(length),
      base_(scratch_.path() + "/ws"),
      mountpoint_(scratch_.path() + "/mnt"),
      model_(scratch_.path(), kTops) {
  mkdir(base_.root().c_str(), 0755);
  for (int client = 0; client < kClients; ++client) {
    BaseTree tree(base_.root() + "/" + kTops[client]);
    PrepareBase(tree);
  }
  for (const std::string& top : {std::string("unruly"), kSiblingTops.front()}) {
    BaseTree tree(base_.root() + "/" + top);
    PrepareBase(tree);
  }
  base_.Directory("shared");
  // Symlinks lead there, from names of several clients: what they would create
  // or find would be everybody's. These lead nowhere, and nobody changes them.
  for (const char* name : {"a", "b", "c", "x"}) {
    base_.Symlink(name, std::string("shared/") + name);
  }
  model_.SaveFrom(kBase, base_.root());
  model_.Restore(kBase);
}

Status Soak::Mount() {
  auto started = MountDriver::Start(base_.root(), mountpoint_);
  if (!started) return std::unexpected(started.error());
  driver_ = std::move(*started);
  for (int client = 0; client < kClients; ++client) {
    clients_.push_back(
        std::make_unique<SoakClient>(client, mountpoint_, model_, random_()));
  }
  // They look for themselves among all of them.
  for (int client = 0; client < kClients; ++client) {
    gate_.Announce();
    threads_.emplace_back([this, client] { Work(client); });
    const std::string name = "client " + std::to_string(client);
    ::pthread_setname_np(threads_.back().native_handle(), name.c_str());
  }
  unruly_ = std::make_unique<Unruly>(mountpoint_, random_());
  unruly_gate_.Announce();
  threads_.emplace_back([this] { WorkUnruly(); });
  ::pthread_setname_np(threads_.back().native_handle(), "unruly");
  sibling_ = std::make_unique<Sibling>(base_.root(),
                                       scratch_.path() + "/sibling", random_());
  TakeBase();
  return {};
}

Soak::~Soak() {
  gate_.Dismiss();
  unruly_gate_.Dismiss();
  for (std::thread& thread : threads_) thread.join();
  clients_.clear();
  if (unruly_) unruly_->DropAll();
}

void Soak::Work(int client) {
  while (gate_.Pass()) {
    if (!clients_[client]->Step(may_be_compound_)) gate_.AwaitClosing();
  }
}

void Soak::WorkUnruly() {
  while (unruly_gate_.Pass()) {
    if (!unruly_->Step()) unruly_gate_.AwaitClosing();
  }
}

void Soak::PauseAll() {
  gate_.Close();
  unruly_gate_.Close();
}

void Soak::ResumeAll() {
  gate_.Open();
  unruly_gate_.Open();
}

void Soak::DropClients() {
  for (auto& client : clients_) client->DropAll();
}

void Soak::DropAll() {
  DropClients();
  unruly_->DropAll();
}

void Soak::LeaveLostDirectories() {
  for (auto& client : clients_) client->LeaveLostDirectory();
}

void Soak::Run() {
  const auto stormy_end = start_ + length_ * kStormy;
  // The clients begin to work as they are made.
  while (SteadyClock::now() < start_ + length_ &&
         !::testing::Test::HasFailure()) {
    Round(SteadyClock::now() < stormy_end);
  }
  Report();
  if (::testing::Test::HasFailure()) return;
  watchdog_.Begin("the end");
  PauseAll();
  DropAll();
  Check("at the end");
  growth_.DemandFlat();
  Remount();
  CommitAll();
  Fsck();
  driver_.reset();  // unmounts
  EXPECT_EQ(FindProblems(base_.root()), "");
}

void Soak::Round(bool stormy) {
  static const std::vector<std::pair<int, Control>> kControls = {
      {9, &Soak::MakeSavepoint}, {8, &Soak::Rollback},
      {3, &Soak::Discard},       {4, &Soak::CommitAll},
      {3, &Soak::Undo},          {3, &Soak::CommitMeanwhile},
      {1, &Soak::Collect},       {1, &Soak::Fsck},
      {2, &Soak::CommitPart},    {6, &Soak::DiscardPart},
      {2, &Soak::LiveSibling}};
  static const std::vector<std::pair<int, Control>> kKills = {
      {2, &Soak::Kill}, {2, &Soak::KillWithin}, {1, &Soak::Remount}};
  const bool kill = stormy && Number(4) == 0;
  const auto& controls = kill ? kKills : kControls;
  int weight = 0;
  for (const auto& control : controls) weight += control.first;
  auto chosen = controls.begin();
  for (auto at = static_cast<int>(Number(weight)); at >= chosen->first;) {
    at -= chosen->first;
    ++chosen;
  }
  may_be_compound_ = !kill;
  if (kill) {
    // Ends what is such a step.
    gate_.Close();
    gate_.Open();
  }
  watchdog_.Begin("work");
  // A while of undisturbed work.
  std::this_thread::sleep_for(std::chrono::milliseconds(10 + Number(200)));
  if (chosen->second == &Soak::Kill ||
      chosen->second == &Soak::CommitMeanwhile ||
      chosen->second == &Soak::LiveSibling) {
    return (this->*chosen->second)();
  }
  Pause();
  (this->*chosen->second)();
  ResumeAll();
}

void Soak::MakeSavepoint() {
  Count("savepoints");
  const std::string name = "s" + std::to_string(++names_);
  Demand("savepoint", driver_->MakeSavepoint(name));
  model_.Save(name);
  savepoints_.push_back(name);
  Check("after savepoint " + name);
}

void Soak::Rollback() {
  if (savepoints_.empty()) return;
  Count("rollbacks");
  LeaveLostDirectories();
  savepoints_.resize(1 + Number(savepoints_.size()));
  Demand("rollback", driver_->Rollback(savepoints_.back()));
  RestoreModel(savepoints_.back());
  Check("after rollback to " + savepoints_.back());
}

void Soak::Discard() {
  Count("discards");
  if (base_is_apart_) DropClients();
  LeaveLostDirectories();
  Demand("discard", driver_->Discard());
  RestoreModel(kBase);
  savepoints_.clear();
  Check("after discard");
  CheckBase("after discard");
}

void Soak::RestoreModel(const std::string& image) {
  model_.Restore(image);
  if (image == kBase) base_is_apart_ = false;
  LeaveLostDirectories();
}

void Soak::SaveBase() {
  model_.Save(kBase);
  base_is_apart_ = false;
}

std::string Soak::AnyChange() {
  const auto diff = daemon().Txfs({"diff", "--name-status", "-z"});
  if (!diff) {
    ADD_FAILURE() << diff.error().ToString();
    return "";
  }
  // Between the paths are letters.
  std::vector<std::string> paths;
  std::istringstream words(*diff);
  changes_.clear();
  for (std::string word; std::getline(words, word, '\0');) {
    changes_.push_back(word);
    if (word.ends_with('/')) word.pop_back();
    const auto is_below = [&](const std::string& top) {
      return word.starts_with(top + "/");
    };
    if (std::ranges::any_of(kTops, is_below)) paths.push_back(word);
  }
  if (paths.empty()) return "";
  std::string path = paths[Number(paths.size())];
  const std::string parent = path.substr(0, path.rfind('/'));
  const bool has_more = parent.find('/') != std::string::npos;
  return has_more && Number(3) == 0 ? parent : path;
}

bool Soak::EndPart(const std::string& command, const std::string& path) {
  const char owner =
      path.starts_with(kShared) ? path[strlen(kShared)] : path[1];
  std::vector<std::string> others;
  for (int client = 0; client < kClients; ++client) {
    if (kTops[client][1] != owner) others.push_back(kTops[client]);
  }
  const auto base = ViewTops(base_.root(), others);
  const auto shown = ViewTops(mountpoint_, others);
  std::vector<std::string> words{command, "--", path};
  if (command == "commit")
    words.insert(words.begin() + 1, {"--accept", kLimit});
  const auto done = daemon().Txfs(words);
  if (!done) {
    EXPECT_NE(done.error().ToString().find("changed nothing at"),
              std::string::npos)
        << command << " " << path << ": " << done.error().ToString();
    return false;
  }
  savepoints_.clear();
  const auto base_now = ViewTops(base_.root(), others);
  const auto shown_now = ViewTops(mountpoint_, others);
  EXPECT_TRUE(base && shown && base_now && shown_now);
  if (!base || !shown || !base_now || !shown_now) return true;
  EXPECT_EQ(Compare(*base, *base_now, {}), "") << command << " " << path;
  EXPECT_EQ(Compare(*shown, *shown_now, {.ino = false}), "")
      << command << " " << path;
  return true;
}

void Soak::CommitPart() {
  const std::string path = AnyChange();
  if (path.empty() || !EndPart("commit", path)) return;
  Count("commits of a part");
  Check("after the commit of " + path);
  CheckNoConflicts("after the commit of " + path);
  model_.SaveFrom(kBase, base_.root());
  base_is_apart_ = true;
  TakeBase();
  commits_.clear();
}

/// What is left of a move that is taken back in part, paths do not tell: the
/// model learns it from the mount.
void Soak::DiscardPart() {
  const std::string path = AnyChange();
  if (path.empty()) return;
  DropClients();
  if (!EndPart("discard", path)) return;
  Count("discards of a part");
  CheckBase("after the discard of " + path);
  CheckNothingIsStale("after the discard of " + path);
  model_.SaveFrom(kPart, mountpoint_);
  RestoreModel(kPart);
  base_is_apart_ = true;
  Check("after the discard of " + path);
}

void Soak::LiveSibling() {
  Count("siblings");
  sibling_->Live(mountpoint_, Number(2) == 0);
}

std::string Soak::TryCommit() {
  const auto report = daemon().Txfs({"commit", "--json", "--accept", kLimit});
  if (!report) {
    const auto status = daemon().Txfs({"status", "--json"});
    ADD_FAILURE() << report.error().ToString() << '\n'
                  << (status ? *status : status.error().ToString());
    TellStory();
    return "";
  }
  // Else there was nothing to commit.
  if (StringOf(*report, "state") != "committed") return "";
  savepoints_.clear();
  return StringOf(*report, "id");
}

void Soak::CommitAll() {
  Count("commits");
  const std::string image = "u" + std::to_string(++names_);
  model_.SaveFrom(image, base_.root());
  const std::string id = TryCommit();
  last_commit_ = id;
  if (id.empty()) {
    model_.Drop(image);
    return;
  }
  if (commits_.size() == kMaxUndo) {
    model_.Drop(commits_.front().image);
    commits_.erase(commits_.begin());
  }
  commits_.push_back({.id = id, .image = image, .base = base_view_});
  SaveBase();
  TakeBase();
  CheckCommitted();
  Check("after commit");
  SampleGrowth();
}

void Soak::CommitMeanwhile() {
  Count("commits meanwhile");
  (void)TryCommit();
  Pause();
  // What of the work since is in the base, nobody knows.
  base_view_ = BaseView();
  commits_.clear();
  CommitAll();
  ResumeAll();
}

void Soak::Undo() {
  unruly_gate_.Close();
  CommitAll();
  // Savepoints stay where there was nothing to commit.
  if (commits_.empty() || !savepoints_.empty()) return;
  Count("undos");
  const Commit last = commits_.back();
  last_commit_ = last.id;
  commits_.pop_back();
  const std::string next_image = "r" + std::to_string(++names_);
  const Commit redo{.id = {}, .image = next_image, .base = base_view_};
  model_.SaveFrom(next_image, base_.root());
  const auto report = daemon().Txfs({"undo", last.id, "--json"});
  Demand("undo", report ? Status() : std::unexpected(report.error()));
  if (!report) return;
  GoBackTo(last, StringOf(*report, "id"));
  if (Number(2) == 0) {
    Count("undos of undos");
    const auto again =
        daemon().Txfs({"undo", StringOf(*report, "id"), "--json"});
    Demand("undo of undo", again ? Status() : std::unexpected(again.error()));
    if (!again) return;
    GoBackTo(redo, StringOf(*again, "id"));
    commits_.push_back(
        {.id = StringOf(*again, "id"), .image = last.image, .base = last.base});
  } else {
    model_.Drop(last.image);
  }
  model_.Drop(next_image);
}

void Soak::GoBackTo(const Commit& commit, const std::string& undo_id) {
  // What is open was open throughout, but it is now whatever has its name.
  DropAll();
  model_.Restore(commit.image);
  SaveBase();
  const TreeView now = BaseView();
  EXPECT_EQ(Compare(commit.base, now, {.ctime = false}), "")
      << "the base after undo " << undo_id;
  TakeBase();
  Check("after undo");
}

void Soak::Remount() {
  Count("remounts");
  growth_ = {};
  unruly_gate_.Close();
  DropAll();
  const auto before = ViewTops(mountpoint_, {"unruly"});
  Demand("remount", driver_->Remount());
  const auto after = ViewTops(mountpoint_, {"unruly"});
  ASSERT_TRUE(before && after);
  EXPECT_EQ(Compare(*before, *after, {.ino = false}), "")
      << "unruly, after a remount";
  Check("after remount");
}

/// What follows a commit in the background gives back the memory that is free;
/// a collection waits for that.
void Soak::SampleGrowth() {
  Collect();
  growth_.Sample(daemon().daemon());
}

void Soak::Collect() {
  Count("gc");
  const auto done =
      daemon().Txfs({"gc", "--keep-commits", std::to_string(kMaxKept)});
  Demand("gc", done ? Status() : std::unexpected(done.error()));
}

void Soak::Fsck() {
  Count("fsck");
  const auto done = daemon().Txfs({"fsck", "--json"});
  Demand("fsck", done ? Status() : std::unexpected(done.error()));
}

void Soak::Kill() {
  Count("kills");
  growth_ = {};
  daemon().Kill();
  PauseAll();
  MountAgain();
  ResumeAll();
}

void Soak::MountAgain() {
  EXPECT_EQ(FindProblems(base_.root()), "") << "after a kill";
  // What is still open must not keep the dead mount from being cleared.
  Demand("mount after kill", daemon().Mount());
  for (auto& client : clients_) client->ForgetMount();
  const auto actual = ViewTops(mountpoint_, kTops);
  if (!actual) {
    ADD_FAILURE() << actual.error().ToString();
    return;
  }
  for (auto& client : clients_) client->SettleInFlight(*actual);
  DropAll();
  Fsck();
}

void Soak::KillWithin() {
  Count("kills within");
  growth_ = {};
  PauseAll();
  LeaveLostDirectories();
  const int signal = Number(2) == 0 ? SIGTERM : SIGKILL;
  if (signal == SIGTERM) Count("shutdowns within");
  const uint64_t what = Number(4);
  const std::string name = "k" + std::to_string(++names_);
  const std::string back = what == 1 && !savepoints_.empty()
                               ? savepoints_[Number(savepoints_.size())]
                               : kBase;
  std::atomic<bool> began = false;
  std::thread killer([&, delay = std::chrono::microseconds(Number(60'000))] {
    began.wait(false);
    std::this_thread::sleep_for(delay);
    daemon().Kill(signal);
  });
  began = true;
  began.notify_one();
  // Whether it is done is seen below.
  if (what == 0) {
    (void)driver_->MakeSavepoint(name);
  } else if (what == 1 && back != kBase) {
    (void)driver_->Rollback(back);
  } else if (what == 2) {
    (void)driver_->Discard();
  } else {
    (void)driver_->Commit();
  }
  killer.join();
  MountAgain();
  const TreeView base_now = BaseView();
  if (!Compare(base_view_, base_now, {}).empty()) {
    Count("kills after the point of no return");
    TakeBase();
    CheckCommitted();
    SaveBase();
  }
  if (what == 1 || what == 2) {
    if (!DifferencesFromModel().empty()) {
      Count("kills after going back");
      RestoreModel(back);
    }
  }
  // Which savepoints and commits there are is not known any more.
  savepoints_.clear();
  commits_.clear();
  Check("after a kill within");
}

void Soak::Check(const std::string& when) {
  EXPECT_EQ(DifferencesFromModel(), "") << when;
  if (::testing::Test::HasFailure()) TellStory();
}

void Soak::TellStory() {
  std::cout << "what was done last:";
  for (const std::string& what : history_) std::cout << ' ' << what << ',';
  std::cout << '\n';
  for (const auto& client : clients_) std::cout << client->Story();
  LookCloser();
}

/// What the model is made from has to be what the daemon knows.
void Soak::CheckNothingIsStale(const std::string& when) {
  const auto cached = ViewTops(mountpoint_, kTops);
  DropKernelCaches();
  const auto fresh = ViewTops(mountpoint_, kTops);
  ASSERT_TRUE(cached && fresh);
  // What the kernel held may have kept its number through a commit.
  EXPECT_EQ(Compare(*fresh, *cached, {.ino = false}), "")
      << when << ", from the kernel's caches";
}

/// Nobody changes the base but through txfs: what differs from what was noted
/// of it was noted of the wrong place.
void Soak::CheckNoConflicts(const std::string& when) {
  const auto status = daemon().Txfs({"status", "--json"});
  ASSERT_TRUE(status.has_value()) << status.error().ToString();
  EXPECT_NE(status->find("\"conflicts\": []"), std::string::npos)
      << when << ":\n"
      << *status;
}

/// What the kernel has of `path`, or with AT_STATX_FORCE_SYNC the daemon.
std::string AttributesOf(const std::string& path, int flags) {
  struct statx info{};
  if (::statx(AT_FDCWD, path.c_str(), flags | AT_SYMLINK_NOFOLLOW,
              STATX_BASIC_STATS, &info) != 0) {
    return std::strerror(errno);
  }
  std::ostringstream text;
  text << "inode " << info.stx_ino << " mode " << std::oct << info.stx_mode
       << std::dec << " nlink " << info.stx_nlink << " size " << info.stx_size
       << " ctime " << info.stx_ctime.tv_sec << '.' << info.stx_ctime.tv_nsec;
  return text.str();
}

/// Where the kernel, the daemon and the base differ. Asks the daemon, and tells
/// what the kernel had before.
void Soak::TellWhatIsCached() const {
  std::vector<std::string> paths = kTops;
  if (const auto shown = ViewTops(mountpoint_, kTops)) {
    for (const auto& [path, view] : *shown) paths.push_back(path);
  }
  for (const std::string& path : paths) {
    const std::string there = mountpoint_ + "/" + path;
    const std::string cached = AttributesOf(there, AT_STATX_DONT_SYNC);
    const std::string asked = AttributesOf(there, AT_STATX_FORCE_SYNC);
    const std::string base = AttributesOf(base_.root() + "/" + path, 0);
    if (cached == asked && asked == base) continue;
    std::cout << path << ": the kernel has " << cached << ", the daemon "
              << asked << ", the base " << base << '\n';
  }
}

void Soak::LookCloser() {
  TellWhatIsCached();
  std::cout << "changes when a part was chosen last:";
  for (const std::string& word : changes_) std::cout << ' ' << word;
  std::cout << '\n';
  const auto expected = ViewTops(model_.root(), kTops);
  const auto base = ViewTops(base_.root(), kTops);
  if (expected && base) {
    std::cout << "the base, where it is not as the model:\n"
              << Compare(*expected, *base, {.ino = false, .ctime = false});
  }
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"diff", "--name-status"},
        {"show", last_commit_, "--name-status"},
        {"fsck"},
        {"log"}}) {
    const auto said = daemon().Txfs(words);
    const std::string text = said ? *said : said.error().ToString();
    std::cout << "txfs " << words.front() << ":\n"
              << text.substr(text.size() - std::min(text.size(), kMostText));
  }
  DropKernelCaches();
  const std::string again = DifferencesFromModel();
  std::cout << "with the kernel's caches dropped"
            << (again.empty() ? " it is as the model\n" : ":\n" + again)
            << std::endl;
}

std::string Soak::DifferencesFromModel() {
  const auto expected = ViewTops(model_.root(), kTops);
  const auto actual = ViewTops(mountpoint_, kTops);
  if (!expected) return expected.error().ToString();
  if (!actual) return actual.error().ToString();
  return Compare(*expected, *actual,
                 {.ino = false,
                  .ctime = false,
                  .mtime = false,
                  .fixed_before = kSoakPast});
}

TreeView Soak::BaseView() {
  std::vector<std::string> all = kTops;
  all.emplace_back("unruly");
  auto view = ViewTops(base_.root(), all);
  if (view) return std::move(*view);
  ADD_FAILURE() << view.error().ToString();
  return {};
}

void Soak::TakeBase() { base_view_ = BaseView(); }

void Soak::CheckBase(const std::string& when) {
  EXPECT_EQ(Compare(base_view_, BaseView(), {}), "") << "the base " << when;
}

void Soak::CheckCommitted() {
  const auto base = ViewTops(base_.root(), kTops);
  const auto shown = ViewTops(mountpoint_, kTops);
  ASSERT_TRUE(base && shown);
  EXPECT_EQ(Compare(*shown, *base, {.ino = false, .ctime = false}), "")
      << "the base after commit";
}

void Soak::Demand(const std::string& what, const Status& done) {
  EXPECT_TRUE(done.has_value()) << what << ": " << done.error().ToString();
}

void Soak::Report() const {
  uint64_t steps = unruly_->steps();
  for (const auto& client : clients_) steps += client->steps();
  std::cout << steps << " steps";
  for (const auto& [what, count] : counts_)
    std::cout << ", " << count << " " << what;
  std::cout << "\nthe last daemon: " << (growth_.MaxRss() >> 20) << " MiB, "
            << growth_.MaxDescriptors() << " descriptors at most;"
            << " MiB/descriptors in the course of time:" << growth_.Course()
            << std::endl;
}

/// $TXFS_SOAK_SECONDS, or a short while.
std::chrono::seconds Length() {
  const char* given = std::getenv("TXFS_SOAK_SECONDS");
  return std::chrono::seconds(given ? std::atoi(given) : Scaled(kSeconds));
}

TEST(SoakMountTest, EverythingAtOnceIsAsTheModel) {
  if (!CanMount())
    GTEST_SKIP() << "no program under test or no usable /dev/fuse";
  umask(022);
  const uint64_t seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
  Soak soak(seed, Length());
  ASSERT_OK(soak.Mount());
  soak.Run();
  EXPECT_FALSE(HasFailure()) << "TXFS_TEST_SEED=" << seed;
}

}  // namespace
}  // namespace txfs::testing

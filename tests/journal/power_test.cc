#include <gtest/gtest.h>
#include <sys/wait.h>

#include <iostream>
#include <memory>
#include <vector>

#include "tests/journal/power_disk.h"
#include "tests/journal/varied_history.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

using HistoryPtr = std::shared_ptr<const VariedHistory>;

/// What a journal has promised to keep.
struct Promise {
  Lsn synced = kNoLsn;
  uint64_t fact = 0;
};

/// Power was lost.
struct JournalOutage {
  DiskImage image;
  Promise promise;
  std::string during;  ///< the call
};

struct LifeOptions {
  int steps = 250;
  int outages = 25;            ///< images, about
  int deaths_in_outages = 8;   ///< of these, those that are lived on from
  unsigned failing_syncs = 0;  ///< percent
  std::string lie_about;       ///< part of a path
  Lie lie = Lie::kNone;
};

/// A journal at work on a disk from which power is taken at random moments.
/// What is not sound after one of these becomes `flaw`.
class JournalLife {
 public:
  JournalLife(uint64_t seed, const LifeOptions& options)
      : options_(options), random_(seed) {
    journal_options_.background_drain = false;
    journal_options_.map_bytes = 64 << 20;
    journal_options_.intake_bytes = 128 << 10;
    journal_options_.first_intake_bytes = 64 << 10;
    journal_options_.segment_bytes = 300'000;
  }

  /// From the beginning.
  void Live() {
    disk_.emplace(dir_.path(), random_());
    auto created = Journal::Create(dir_.Open(), journal_options_);
    if (!created) return Blame("cannot be created", created.error());
    past_.push_back(std::make_shared<const VariedHistory>(random_()));
    journal_ = std::move(*created);
    ExpectOutages();
    Work();
  }

  /// From what `outage` of another life has left.
  void LiveOn(const JournalOutage& outage,
              const std::vector<HistoryPtr>& past) {
    outage.image.WriteTo(dir_.path());
    past_ = past;
    promise_ = outage.promise;
    disk_.emplace(dir_.path(), random_());
    ExpectOutages();
    Open();
    if (journal_) Work();
  }

  [[nodiscard]] const std::string& flaw() const { return flaw_; }
  [[nodiscard]] int images() const { return images_; }

 private:
  void ExpectOutages() {
    disk_->LieAbout(options_.lie_about, options_.lie);
    disk_->FailSyncs(options_.failing_syncs);
    // A step makes some ten calls that are seen before and after.
    const auto rarity = static_cast<uint64_t>(
        1 + options_.steps * 10 / std::max(options_.outages, 1));
    disk_->AtEveryCall([this, rarity](const DiskCall& call) {
      if (random_() % rarity != 0 || options_.outages == 0) return;
      outages_.push_back(
          {disk_->ImageAfterPowerLoss(), promise_, call.ToString()});
    });
  }

  /// Opens the journal, and finds one of the states it went through.
  void Open() {
    auto opened = Journal::Open(dir_.Open(), journal_options_);
    if (!opened && MayFail(opened.error())) return;
    if (!opened) return Blame("cannot be opened", opened.error());
    journal_ = std::move(*opened);
    const uint64_t lsn = Raw(journal_->last_lsn());
    if (Lsn{lsn} < promise_.synced) return Blame("lost what was synced");
    if (lsn >= past_.size()) return Blame("has what never was");
    past_.resize(lsn + 1);
    CheckState();
    CheckLog();
    CheckFact();
  }

  void CheckState() {
    Model loaded;
    const Status status = journal_->Load(loaded);
    if (!status)
      return MayFail(status.error())
                 ? void()
                 : Blame("cannot be loaded", status.error());
    if (!(loaded == past_.back()->model)) return Blame("is no prefix");
    const std::string damage = past_.back()->FindDamage(*journal_);
    if (!damage.empty()) Blame("has damaged content: " + damage);
  }

  void CheckLog() {
    uint64_t next = 1;
    uint64_t denied = 0;
    const Status status = journal_->ReadLog(Lsn{1}, [&](const LogEntry& entry) {
      if (IsDenial(entry.change)) ++denied;
      if (IsDenial(entry.change) && entry.change.reason != "why") return false;
      // A row may stand for several changes, and has the LSN of the last.
      next += entry.count;
      return Raw(entry.lsn) == next - 1;
    });
    if (!status && MayFail(status.error())) return;
    if (!status || next != past_.size()) Blame("has not the log of its state");
    const auto denials = journal_->ReadDenials();
    if (!denials || denials->entries.size() != denied ||
        denials->Dropped() != 0) {
      Blame("counts other denials than it has");
    }
  }

  void CheckFact() {
    const auto fact = journal_->GetMeta("fact");
    const uint64_t found = fact ? std::stoull(*fact) : 0;
    if (found < promise_.fact) Blame("lost a fact");
    promise_.fact = found;
  }

  void Work() {
    history_ = std::make_unique<VariedHistory>(*past_.back());
    for (int i = 0; i < options_.steps && flaw_.empty(); ++i) {
      const uint64_t dice = random_() % 100;
      if (dice < 10) {
        Keep(journal_->Sync());
      } else if (dice < 16) {
        Keep(journal_->Drain());
      } else if (dice < 19) {
        PutFact();
      } else if (dice < 20) {
        Die();
      } else if (dice < 26) {
        Deny();
      } else {
        Step();
      }
    }
    journal_.reset();
    disk_.reset();
    images_ += static_cast<int>(outages_.size());
    if (flaw_.empty()) Judge();
  }

  void Step() {
    const auto lsn = history_->Step(*journal_);
    if (!lsn) {
      return MayFail(lsn.error()) ? void()
                                  : Blame("refuses a change", lsn.error());
    }
    past_.push_back(std::make_shared<const VariedHistory>(*history_));
  }

  /// No two are the same, so that all of them are in the log.
  void Deny() {
    Change change{.op = Op::kUnlink, .result = EPERM};
    change.path = std::to_string(past_.size());
    change.policy = 1 + past_.size() % 3;
    change.rule = "rule";
    change.reason = "why";
    const auto lsn = journal_->Append(change);
    if (!lsn) {
      return MayFail(lsn.error()) ? void()
                                  : Blame("refuses a denial", lsn.error());
    }
    past_.push_back(past_.back());
  }

  void Keep(const Status& status) {
    if (status) {
      promise_.synced = journal_->last_lsn();
    } else if (!MayFail(status.error())) {
      Blame("cannot be synced", status.error());
    }
  }

  void PutFact() {
    const Status status =
        journal_->PutMeta("fact", std::to_string(promise_.fact + 1));
    if (status) ++promise_.fact;
    if (!status && !MayFail(status.error())) Blame("refuses a fact");
  }

  /// The process is killed, and another one goes on.
  void Die() {
    journal_->Forget();
    journal_.reset();
    const size_t acknowledged = past_.size();
    do {
      Open();
    } while (!journal_ && flaw_.empty());
    if (past_.size() != acknowledged) Blame("lost what was acknowledged");
    history_ = std::make_unique<VariedHistory>(*past_.back());
  }

  void Judge() {
    int deaths = options_.deaths_in_outages;
    for (const JournalOutage& outage : outages_) {
      LifeOptions next = options_;
      next.deaths_in_outages = 0;
      next.steps = 15;
      next.outages = deaths-- > 0 ? 3 : 0;
      next.failing_syncs = 0;
      next.lie = Lie::kNone;
      JournalLife after(random_(), next);
      after.LiveOn(outage, past_);
      images_ += after.images();
      if (after.flaw().empty()) continue;
      flaw_ = "power lost at " + outage.during + ": " + after.flaw();
      return;
    }
  }

  [[nodiscard]] bool MayFail(const Error& error) const {
    return options_.failing_syncs != 0 && error.code == EIO;
  }
  void Blame(const std::string& what) {
    if (flaw_.empty()) flaw_ = "the journal " + what;
  }
  void Blame(const std::string& what, const Error& error) {
    Blame(what + ": " + error.ToString());
  }

  const LifeOptions options_;
  std::mt19937_64 random_;
  JournalOptions journal_options_;
  TempDir dir_;
  std::optional<PowerDisk> disk_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<VariedHistory> history_;
  std::vector<HistoryPtr> past_;  ///< by LSN
  Promise promise_;
  std::vector<JournalOutage> outages_;
  int images_ = 0;
  std::string flaw_;
};

/// Lives until `images` were judged, or one had a flaw, which is returned.
std::string LiveFor(int images, const LifeOptions& options) {
  uint64_t seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
  int judged = 0;
  for (; judged < images; ++seed) {
    const std::string repeat = "TXFS_TEST_SEED=" + std::to_string(seed) + ": ";
    JournalLife life(seed, options);
    life.Live();
    if (!life.flaw().empty()) return repeat + life.flaw();
    if (life.images() == 0) return repeat + "no power was lost";
    judged += life.images();
  }
  std::cout << judged << " images" << std::endl;
  return "";
}

TEST(PowerLossTest, LeavesAPrefixWithAllThatWasSynced) {
  EXPECT_EQ(LiveFor(Scaled(300), {}), "");
}

TEST(PowerLossTest, LeavesAPrefixWhereSyncsFailed) {
  EXPECT_EQ(LiveFor(Scaled(120), {.failing_syncs = 15}), "");
}

/// The tests above can fail: a sync less, or one batch late, and they do.
class MissingSyncTest
    : public ::testing::TestWithParam<std::pair<const char*, Lie>> {};

TEST_P(MissingSyncTest, IsFound) {
  const auto& [path, lie] = GetParam();
  const TempDir leftovers;
  // In a process of its own: damaged tables may be more than LMDB survives.
  const pid_t child = ::fork();
  if (child == 0) {
    ::setenv("TMPDIR", leftovers.path().c_str(), 1);
    const std::string flaw = LiveFor(2000, {.lie_about = path, .lie = lie});
    ::_exit(flaw.empty() ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_NE(status, 0);
}

INSTANTIATE_TEST_SUITE_P(
    PowerLoss, MissingSyncTest,
    ::testing::Values(std::pair("/intake", Lie::kIgnoresSync),
                      std::pair("/spool/", Lie::kIgnoresSync),
                      std::pair("/spool/", Lie::kSyncsLate),
                      std::pair("/data.mdb", Lie::kIgnoresSync),
                      std::pair("/data.mdb", Lie::kSyncsLate)));

}  // namespace
}  // namespace txfs

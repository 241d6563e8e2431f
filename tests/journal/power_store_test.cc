#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <vector>

#include "journal/history.h"
#include "journal/store.h"
#include "tests/journal/fixture.h"
#include "tests/journal/power_disk.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

constexpr Timestamp kBegun{1'700'000'000, 0};

/// A transaction as the store has promised it to be.
struct Expected {
  std::string id;
  Lsn synced = kNoLsn;
  bool ended = false;
  std::string message;  ///< of the summary, when acknowledged
};

struct StoreOutage {
  DiskImage image;
  std::vector<Expected> expected;
  std::string during;
};

/// A store through which transactions come and go, on a disk from which power
/// is taken at random moments.
class StoreLife {
 public:
  explicit StoreLife(uint64_t seed) : random_(seed) {
    options_.background_drain = false;
    options_.map_bytes = 1 << 20;
    options_.intake_bytes = 64 << 10;
    disk_.emplace(dir_.path(), random_());
    disk_->AtEveryCall([this](const DiskCall& call) {
      if (random_() % 8 != 0) return;
      outages_.push_back(
          {disk_->ImageAfterPowerLoss(), expected_, call.ToString()});
    });
  }

  Status Live() {
    store_ = TRY(Store::Open(dir_.Open(), dir_.path(), "/workspace"));
    OpenTransaction first = TRY(Begin("a"));
    TRY(Work(first));
    OpenTransaction other = TRY(Begin("b"));
    TRY(Work(other));
    TRY(store_->UpdateSummary(Summarise(first.id, "in between", false)));
    Of(first.id).message = "in between";
    OpenTransaction next = TRY(Succeed(std::move(first)));
    TRY(Work(next));
    TRY(End(std::move(other)));
    TRY(store_->EmptyTrash());
    TRY(End(std::move(next)));
    return {};
  }

  /// What is wrong with what an outage left, or "".
  std::string FindFlaw() {
    disk_.reset();
    for (const StoreOutage& outage : outages_) {
      const Status sound = Check(outage);
      if (!sound) {
        return "power lost at " + outage.during + ": " +
               sound.error().ToString();
      }
    }
    return "";
  }
  [[nodiscard]] int images() const { return static_cast<int>(outages_.size()); }

 private:
  Expected& Of(const std::string& id) {
    return *std::ranges::find(expected_, id, &Expected::id);
  }
  static TransactionSummary Summarise(const std::string& id,
                                      const std::string& message, bool ended) {
    TransactionSummary summary{.id = id, .name = "n", .created = kBegun};
    summary.message = message;
    if (!ended) return summary;
    summary.state = TransactionState::kCommitted;
    summary.ended = kBegun;
    return summary;
  }
  Result<OpenTransaction> Begin(const std::string& name) {
    OpenTransaction begun = TRY(store_->Begin(name, kBegun, options_));
    expected_.push_back({begun.id, kNoLsn, false, ""});
    return begun;
  }
  Status Work(OpenTransaction& transaction) {
    History history(random_());
    for (int i = 0; i < 10; ++i) TRY(history.Step(*transaction.journal));
    TRY(transaction.journal->Sync());
    Of(transaction.id).synced = transaction.journal->last_lsn();
    return {};
  }
  Result<OpenTransaction> Succeed(OpenTransaction old) {
    PreparedTransaction prepared =
        TRY(store_->Prepare({.id = old.id, .name = "a"}, kBegun, options_));
    TRY(TransactionHistory(store_->dir())
            .Write(Summarise(old.id, "done", true)));
    OpenTransaction next = TRY(store_->Succeed(old.id, std::move(prepared)));
    Of(old.id).ended = true;
    Of(old.id).message = "done";
    old.journal->Forget();
    expected_.push_back({next.id, kNoLsn, false, ""});
    return next;
  }
  Status End(OpenTransaction transaction) {
    const std::string id = transaction.id;
    TRY(EndTransaction(*store_, std::move(transaction),
                       Summarise(id, "end", true)));
    Of(id).ended = true;
    Of(id).message = "end";
    return {};
  }

  Status Check(const StoreOutage& outage) {
    const TempDir dir;
    outage.image.WriteTo(dir.path());
    const NoSyncs fast(dir.path());
    const auto store = TRY(Store::Open(dir.Open(), dir.path(), "/workspace"));
    const auto list = TRY(store->List());
    const auto open = TRY(store->OpenIds());
    for (const Expected& expected : outage.expected) {
      const auto found =
          std::ranges::find(list, expected.id, &TransactionSummary::id);
      if (found == list.end()) return Fail(0, "lost " + expected.id);
      if (expected.ended && found->ended == Timestamp{}) {
        return Fail(0, "forgot that " + expected.id + " has ended");
      }
      // It may have got a newer one that was not acknowledged.
      if (!expected.message.empty() && found->message.empty()) {
        return Fail(0, "lost the message of " + expected.id);
      }
    }
    for (const std::string& id : open) TRY(CheckOpen(*store, id, outage));
    TRY(store->EmptyTrash());
    TRY(store->Begin("new", kBegun, options_));
    return {};
  }

  Status CheckOpen(Store& store, const std::string& id,
                   const StoreOutage& outage) const {
    const OpenTransaction opened = TRY(store.Resume(id, options_));
    const auto expected = std::ranges::find(outage.expected, id, &Expected::id);
    if (expected == outage.expected.end()) return {};
    if (expected->ended) return Fail(0, id + " has ended and is open");
    if (opened.journal->last_lsn() < expected->synced) {
      return Fail(0, id + " lost what was synced");
    }
    return {};
  }

  std::mt19937_64 random_;
  TempDir dir_;
  JournalOptions options_;
  std::optional<PowerDisk> disk_;
  std::unique_ptr<Store> store_;
  std::vector<Expected> expected_;
  std::vector<StoreOutage> outages_;
};

TEST(PowerLossStoreTest, KeepsTransactionsAndHistory) {
  uint64_t seed = FirstSeed();
  std::cout << "TXFS_TEST_SEED=" << seed << std::endl;
  const int images = Scaled(80);
  int judged = 0;
  for (; judged < images; ++seed) {
    SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed));
    StoreLife life(seed);
    ASSERT_OK(life.Live());
    ASSERT_EQ(life.FindFlaw(), "");
    ASSERT_GT(life.images(), 0);
    judged += life.images();
  }
  std::cout << judged << " images" << std::endl;
}

}  // namespace
}  // namespace txfs

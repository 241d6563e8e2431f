#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <set>

#include "journal/history.h"
#include "journal/journal.h"
#include "journal/store.h"
#include "tests/journal/fault_disk.h"
#include "tests/journal/varied_history.h"
#include "tests/repeat.h"

namespace txfs {
namespace {

constexpr Timestamp kNow{1'700'000'000, 0};

/// How the disk fails.
struct Manner {
  const char* name;
  uint64_t count;  ///< of calls that fail
  bool short_write;
};
constexpr Manner kManners[] = {
    {"Once", 1, false}, {"Short", 1, true}, {"ForAWhile", 40, false}};

/// Lets the disk fail with each error at its first call, at its second, and so
/// on, until it has not been asked that often.
class FaultTest : public ::testing::TestWithParam<Manner> {
 protected:
  FaultTest() {
    options_.background_drain = false;
    options_.map_bytes = 1 << 20;
    options_.intake_bytes = 64 << 10;
    options_.segment_bytes = 300'000;
    std::cout << "TXFS_TEST_SEED=" << seed_ << std::endl;
  }

  /// Runs `round` in a new directory for each call that can fail. Arrange, then
  /// disk.Expect(fault), act, disk.Recover(), assert.
  template <class Round>
  void ForEachCall(const Round& round) {
    for (const int error : DiskErrors(seed_)) {
      ForEachCall(error, round);
      if (HasFailure()) return;
    }
  }

  template <class Round>
  void ForEachCall(int error, const Round& round) {
    for (uint64_t call = 1;; ++call) {
      const TempDir dir;
      FaultyDisk disk(dir.path());
      SCOPED_TRACE("TXFS_TEST_SEED=" + std::to_string(seed_) + ", call " +
                   std::to_string(call) + ": " + strerrorname_np(error));
      round(dir, disk,
            FaultyDisk::Fault{call, GetParam().count, error,
                              GetParam().short_write});
      SCOPED_TRACE(disk.failed());
      ASSERT_FALSE(HasFailure());
      if (!disk.has_failed()) {
        EXPECT_GT(call, 5U);
        return;
      }
    }
  }

  /// It succeeded, or it failed as the disk did.
  template <class T>
  static bool Honest(const Result<T>& result, const FaultyDisk& disk,
                     int error) {
    if (result) return true;
    EXPECT_EQ(result.error().code, error)
        << result.error().message << ", after " << disk.failed();
    return false;
  }

  static void ExpectHas(Journal& journal, const VariedHistory& history) {
    Model loaded;
    ASSERT_OK(journal.Load(loaded));
    EXPECT_TRUE(loaded == history.model);
    EXPECT_EQ(history.FindDamage(journal), "");
  }

  const uint64_t seed_ = FirstSeed();
  JournalOptions options_;
};

TEST_P(FaultTest, AJournalKeepsWhatItAcknowledged) {
  const int steps = std::max(40, Scaled(40));  // fewer do not meet every call
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    auto created = Journal::Create(dir.Open(), options_);
    ASSERT_OK(created);
    const std::unique_ptr<Journal> journal = std::move(*created);
    VariedHistory history(seed_);
    std::mt19937_64 random(seed_);
    std::set<std::string> facts{""};  ///< what it may be
    disk.Expect(fault);
    for (int i = 0; i < steps; ++i) {
      if (i == steps * 3 / 4) disk.Recover();
      switch (random() % 10) {
        case 0:
          Honest(journal->Sync(), disk, fault.error);
          break;
        case 1:
          Honest(journal->Drain(), disk, fault.error);
          break;
        case 2: {
          const std::string next = std::to_string(i);
          if (Honest(journal->PutMeta("fact", next), disk, fault.error)) {
            facts.clear();
          }
          facts.insert(next);
          break;
        }
        default:
          Honest(history.Step(*journal), disk, fault.error);
      }
    }
    disk.Recover();

    // Work goes on, and all of it is there, for another process, too.
    for (int i = 0; i < 5; ++i) ASSERT_OK(history.Step(*journal));
    ASSERT_OK(journal->Sync());
    EXPECT_EQ(history.FindDamage(*journal), "");
    if (random() % 2 == 0) ExpectHas(*journal, history);
    journal->Forget();
    const auto reopened = Journal::Open(dir.Open(), options_);
    ASSERT_OK(reopened);
    ExpectHas(**reopened, history);
    const std::string found = (*reopened)->GetMeta("fact").value_or("");
    EXPECT_TRUE(facts.contains(found)) << found;
  });
}

TEST_P(FaultTest, AJournalKeepsWhatItAcknowledgedWhileItsRingGrows) {
  options_.first_intake_bytes = 64 << 10;
  options_.intake_bytes = 192 << 10;
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    auto created = Journal::Create(dir.Open(), options_);
    ASSERT_OK(created);
    const std::unique_ptr<Journal> journal = std::move(*created);
    const std::string ring = dir.path() + "/intake";
    struct stat st{};
    const auto has_grown = [&] {
      return ::stat(ring.c_str(), &st) == 0 &&
             static_cast<uint64_t>(st.st_size) > options_.intake_bytes;
    };
    VariedHistory history(seed_);
    disk.Expect(fault);
    for (int i = 0; i < 400 && !has_grown(); ++i) {
      Honest(history.Step(*journal), disk, fault.error);
    }
    EXPECT_TRUE(disk.has_failed() || has_grown());
    disk.Recover();

    for (int i = 0; i < 5; ++i) ASSERT_OK(history.Step(*journal));
    ASSERT_OK(journal->Sync());
    journal->Forget();
    const auto reopened = Journal::Open(dir.Open(), options_);
    ASSERT_OK(reopened);
    ExpectHas(**reopened, history);
  });
}

TEST_P(FaultTest, AJournalThatCannotBeOpenedCanBeLater) {
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    VariedHistory history(seed_);
    {
      const auto journal = Journal::Create(dir.Open(), options_);
      ASSERT_OK(journal);
      for (int i = 0; i < 30; ++i) ASSERT_OK(history.Step(**journal));
      (*journal)->Forget();
    }

    disk.Expect(fault);
    if (auto opened = Journal::Open(dir.Open(), options_);
        Honest(opened, disk, fault.error)) {
      (*opened)->Forget();
    }
    disk.Recover();

    const auto journal = Journal::Open(dir.Open(), options_);
    ASSERT_OK(journal);
    ExpectHas(**journal, history);
  });
}

TEST_P(FaultTest, AStoreCanBeMadeLater) {
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    disk.Expect(fault);
    Honest(Store::Open(dir.Open(), dir.path(), "/w"), disk, fault.error);
    disk.Recover();

    ASSERT_OK(Store::Open(dir.Open(), dir.path(), "/w"));
  });
}

TEST_P(FaultTest, ATransactionBeginsOrDoesNot) {
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    const auto store = Store::Open(dir.Open(), dir.path(), "/w");
    ASSERT_OK(store);

    disk.Expect(fault);
    const bool begun =
        Honest((*store)->Begin("a", kNow, options_), disk, fault.error);
    disk.Recover();

    ASSERT_OK((*store)->EmptyTrash());
    const auto open = (*store)->OpenIds();
    ASSERT_OK(open);
    EXPECT_TRUE(!begun || open->size() == 1);
    for (const std::string& id : *open) {
      EXPECT_OK((*store)->Resume(id));
    }
    if (open->empty()) {
      EXPECT_OK((*store)->Begin("a", kNow, options_));
    }
  });
}

TEST_P(FaultTest, ATransactionEndsOrIsOpen) {
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    const auto store = Store::Open(dir.Open(), dir.path(), "/w");
    ASSERT_OK(store);
    auto begun = (*store)->Begin("a", kNow, options_);
    ASSERT_OK(begun);
    const std::string id = begun->id;
    TransactionSummary summary{.id = id, .name = "a", .created = kNow};
    summary.message = "updated";

    disk.Expect(fault);
    const bool updated =
        Honest((*store)->UpdateSummary(summary), disk, fault.error);
    summary.state = TransactionState::kCommitted;
    summary.ended = kNow;
    const bool ended = Honest(
        EndTransaction(**store, std::move(*begun), summary), disk, fault.error);
    disk.Recover();

    ASSERT_OK((*store)->EmptyTrash());
    const auto list = (*store)->List();
    ASSERT_OK(list);
    ASSERT_EQ(list->size(), 1U);
    EXPECT_TRUE(!(updated || ended) || list->at(0).message == "updated");
    const bool is_open = !(*store)->OpenIds()->empty();
    EXPECT_FALSE(ended && is_open);
    EXPECT_EQ(is_open, list->at(0).ended == Timestamp{});
    if (is_open) {
      EXPECT_OK((*store)->Resume(id));
    }
  });
}

TEST_P(FaultTest, ATransactionIsSucceededOrIsOpen) {
  ForEachCall([&](const TempDir& dir, FaultyDisk& disk,
                  const FaultyDisk::Fault& fault) {
    const auto store = Store::Open(dir.Open(), dir.path(), "/w");
    ASSERT_OK(store);
    auto old = (*store)->Begin("a", kNow, options_);
    ASSERT_OK(old);
    const std::string id = old->id;
    TransactionSummary summary{.id = id, .name = "a", .created = kNow};
    summary.state = TransactionState::kCommitted;
    summary.ended = kNow;

    disk.Expect(fault);
    bool succeeded = false;
    auto prepared = (*store)->Prepare({.id = id, .name = "a"}, kNow, options_);
    if (Honest(prepared, disk, fault.error) &&
        Honest(TransactionHistory((*store)->dir()).Write(summary), disk,
               fault.error)) {
      succeeded = Honest((*store)->Succeed(id, std::move(*prepared)), disk,
                         fault.error);
    }
    disk.Recover();
    old->journal->Forget();
    old = Fail(0, "closed");

    ASSERT_OK((*store)->EmptyTrash());
    const auto open = (*store)->OpenIds();
    ASSERT_OK(open);
    ASSERT_LE(open->size(), 1U);
    EXPECT_TRUE(!succeeded || std::ranges::count(*open, id) == 0);
    for (const std::string& each : *open) {
      EXPECT_OK((*store)->Resume(each));
    }
    ASSERT_OK((*store)->List());
  });
}

INSTANTIATE_TEST_SUITE_P(Disk, FaultTest, ::testing::ValuesIn(kManners),
                         [](const auto& tested) {
                           return std::string(tested.param.name);
                         });

}  // namespace
}  // namespace txfs

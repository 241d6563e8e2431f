#include "journal/intake.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/journal/fixture.h"

namespace txfs {
namespace {

constexpr uint64_t kHeaderPage = 4096;

class IntakeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fd_ = dir_.Open();
    auto intake = Intake::Create(fd_.get(), Intake::kMinCapacity, io_);
    ASSERT_OK(intake);
    intake_ = std::move(*intake);
    intake_->BeginEpoch(start_);
  }

  /// Appends a record whose bytes follow from its LSN.
  void Append(size_t size) {
    const std::string text = Content(Raw(intake_->next_lsn()), size);
    ASSERT_TRUE(intake_->HasRoom(Intake::RecordSize(size, 0)));
    ASSERT_OK(intake_->Append(AsBytes(text), {}, {}));
  }

  /// Opens the file afresh and returns the records a recovery finds.
  std::vector<std::pair<Lsn, std::string>> Recover(const IntakeCursor& cursor) {
    auto opened = Intake::Open(fd_.get(), io_);
    EXPECT_OK(opened);
    if (!opened) return {};
    (*opened)->Recover(cursor, [](const IntakeRecord&) { return true; });
    std::vector<std::pair<Lsn, std::string>> found;
    const auto records = (*opened)->Waiting(SIZE_MAX, UINT32_MAX);
    EXPECT_OK(records);
    for (const IntakeRecord& record : *records) {
      found.emplace_back(record.lsn, std::string(AsText(record.change)));
    }
    return found;
  }

  void Scribble(uint64_t place, std::string_view bytes) {
    const auto fd = OpenAt(fd_.get(), "intake", O_RDWR);
    ASSERT_OK(fd);
    ASSERT_OK(WriteFully(fd->get(), kHeaderPage + place, AsBytes(bytes)));
  }

  TempDir dir_;
  UniqueFd fd_;
  FaultyIo io_;
  const IntakeCursor start_{12345, 0, Lsn{1}};
  std::unique_ptr<Intake> intake_;
};

TEST_F(IntakeTest, RecoversWhatWasAppended) {
  for (size_t size : {0, 1, 7, 8, 300, 5000}) Append(size);

  const auto found = Recover(start_);

  ASSERT_EQ(found.size(), 6U);
  EXPECT_EQ(found[5], std::pair(Lsn{6}, Content(6, 5000)));
}

TEST_F(IntakeTest, GoesRoundManyTimesWithRecordsOfAllSizes) {
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const IntakeCursor cursor = intake_->DrainedCursor();
    const size_t size = random() % 3000;
    Append(size);
    if (round % 50 == 0) {
      const auto found = Recover(cursor);
      ASSERT_EQ(found.size(), 1U);
      ASSERT_EQ(found[0].second, Content(Raw(cursor.next_lsn), size));
    }
    const auto records = intake_->Waiting(10, UINT32_MAX);
    ASSERT_OK(records);
    const IntakeCursor after = intake_->CursorAfter(records->back());
    intake_->Drained(after);
    intake_->Durable(after);
  }
}

TEST_F(IntakeTest, PlacesAreTakenUntilTheTablesCannotForgetThem) {
  while (intake_->HasRoom(Intake::RecordSize(1000, 0))) Append(1000);
  const auto records = intake_->Waiting(SIZE_MAX, UINT32_MAX);
  ASSERT_OK(records);
  const IntakeCursor after = intake_->CursorAfter(records->back());

  intake_->Drained(after);
  EXPECT_FALSE(intake_->HasRoom(Intake::RecordSize(1000, 0)));
  intake_->Durable(after);
  EXPECT_TRUE(intake_->HasRoom(Intake::RecordSize(1000, 0)));
}

TEST_F(IntakeTest, StopsAtATornRecord) {
  for (int i = 0; i < 10; ++i) Append(100);
  const uint64_t size = Intake::RecordSize(100, 0);
  Scribble(size * 6 + 60, "torn");

  EXPECT_EQ(Recover(start_).size(), 6U);
}

TEST_F(IntakeTest, DoesNotTakeRecordsOfAnotherEpoch) {
  for (int i = 0; i < 10; ++i) Append(100);
  EXPECT_TRUE(Recover({54321, 0, Lsn{1}}).empty());
}

TEST_F(IntakeTest, DoesNotTakeRecordsOfTheLapBefore) {
  const uint64_t size = Intake::RecordSize(1000, 0);
  while (intake_->HasRoom(size)) Append(1000);
  const auto records = intake_->Waiting(SIZE_MAX, UINT32_MAX);
  ASSERT_OK(records);
  const IntakeCursor after = intake_->CursorAfter(records->back());
  intake_->Drained(after);
  intake_->Durable(after);
  Append(1000);
  Append(1000);

  EXPECT_EQ(Recover(after).size(), 2U);
}

TEST_F(IntakeTest, AnyDamageLeavesAPrefix) {
  for (int i = 0; i < 100; ++i) Append(static_cast<size_t>(i) * 3);
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const std::string noise = Content(random(), 1 + random() % 40);
    Scribble(random() % 20000, noise);
    const auto found = Recover(start_);
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].first, Lsn{i + 1});
      ASSERT_EQ(found[i].second, Content(i + 1, i * 3));
    }
  }
}

TEST_F(IntakeTest, AnyCursorIsSurvived) {
  for (int i = 0; i < 100; ++i) Append(200);
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    Recover({12345, random(), Lsn{random() % 100}});
    Recover({12345, UINT64_MAX - random() % 5000, Lsn{1}});
  }
}

TEST_F(IntakeTest, RefusesADamagedHeaderAndANewerVersion) {
  intake_.reset();
  const auto fd = OpenAt(fd_.get(), "intake", O_RDWR);
  ASSERT_OK(fd);
  ASSERT_OK(WriteFully(fd->get(), 16, AsBytes("x")));
  EXPECT_ERRNO(Intake::Open(fd_.get(), io_), EBADMSG);
  ASSERT_OK(WriteFully(fd->get(), 8, AsBytes("\x02")));
  EXPECT_ERRNO(Intake::Open(fd_.get(), io_), EPROTONOSUPPORT);
  ASSERT_OK(WriteFully(fd->get(), 0, AsBytes("garbage")));
  EXPECT_ERRNO(Intake::Open(fd_.get(), io_), EBADMSG);
  ASSERT_EQ(::ftruncate(fd->get(), 100), 0);
  EXPECT_ERRNO(Intake::Open(fd_.get(), io_), EBADMSG);
}

TEST_F(IntakeTest, TheDiskFailingIsAnErrorOfTheAppendThatNeededIt) {
  Append(100);
  io_.write_error = EIO;
  EXPECT_ERRNO(intake_->Append(AsBytes(Content(1, 9000)), {}, {}), EIO);
  io_.write_error = 0;
  Append(9000);
  EXPECT_EQ(Recover(start_).size(), 2U);
}

}  // namespace
}  // namespace txfs

// What no txfs writes is not read: docs/format.md, "What is rejected".

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "fs/commit/commit_image.h"
#include "fs/commit/committer.h"
#include "fs/vault/vault_manifest.h"
#include "fs/vault/vault_sums.h"
#include "journal/rows.h"
#include "journal/support/checksum.h"

namespace txfs {
namespace {

constexpr const char* kStoredId = "01a1fda80390";
constexpr const char* kOther = "01a1fda80391";

const std::vector<std::string> kBadPaths = {
    "/etc/passwd",         "..", "../x", "a/../b", "a/./b", "a//b", "a/", ".",
    std::string("a\0b", 3)};
const std::vector<std::string> kBadIds = {
    "/home/ann",     "..",           "../../../x",  "01a1fda8039",
    "01a1fda803900", "01A1FDA80390", "01a1fda8039/"};

TransactionSummary Sound() {
  return {.id = kStoredId,
          .name = "a",
          .state = TransactionState::kCommitted,
          .created = {1'700'000'000, 5},
          .ended = {1'700'000'060, 6}};
}

bool IsRead(const TransactionSummary& summary) {
  return DecodeSummary(EncodeSummary(summary)).has_value();
}

TEST(RejectTest, SummariesOfIdsThatAreNone) {
  ASSERT_TRUE(IsRead(Sound()));
  for (const std::string& bad : kBadIds) {
    TransactionSummary summary = Sound();
    summary.id = bad;
    EXPECT_FALSE(IsRead(summary)) << bad;
    summary = Sound();
    summary.undone_by = bad;
    EXPECT_FALSE(IsRead(summary)) << bad;
    summary = Sound();
    summary.kind = TransactionKind::kUndo;
    summary.of = bad;
    EXPECT_FALSE(IsRead(summary)) << bad;
  }
}

TEST(RejectTest, SummariesThatAreOfThemselves) {
  TransactionSummary summary = Sound();
  summary.undone_by = kStoredId;
  EXPECT_FALSE(IsRead(summary));
  summary = Sound();
  summary.of = kOther;
  EXPECT_FALSE(IsRead(summary)) << "a whole transaction is of none";
  summary.kind = TransactionKind::kUndo;
  EXPECT_TRUE(IsRead(summary));
  summary.of = kStoredId;
  EXPECT_FALSE(IsRead(summary));
  summary.of.clear();
  EXPECT_FALSE(IsRead(summary)) << "an undo is of something";
}

TEST(RejectTest, SummariesOfTimesThatNoClockShows) {
  const std::vector<Timestamp> bad = {{-1, 0},
                                      {INT64_MIN, 0},
                                      {INT64_MAX, 0},
                                      {0, 1'000'000'000},
                                      {0, UINT32_MAX}};
  for (const Timestamp& time : bad) {
    TransactionSummary summary = Sound();
    summary.created = time;
    EXPECT_FALSE(IsRead(summary));
    summary = Sound();
    summary.ended = time;
    EXPECT_FALSE(IsRead(summary));
  }
}

TEST(RejectTest, UndosThatLeadInACircleComeToAnEnd) {
  TransactionSummary a = Sound();
  a.kind = TransactionKind::kUndo;
  TransactionSummary b = a;
  a.of = b.id = kOther;
  b.of = a.id;
  const std::vector<TransactionSummary> list = {a, b};
  std::ignore = TakesBack(a, list);
}

// --- plans -----------------------------------------------------------------

bool IsRead(const CommitStep& step,
            TransactionKind kind = TransactionKind::kWhole) {
  CommitRecord record;
  record.summary = Sound();
  record.summary.kind = kind;
  if (kind == TransactionKind::kUndo) record.summary.of = kOther;
  record.vault = kStoredId;
  record.steps.push_back(step);
  return DecodeRecord(EncodeRecord(record)).has_value();
}

CommitStep Taking(Spot from, Spot to) {
  return {.kind = StepKind::kMove,
          .from = std::move(from),
          .to = std::move(to),
          .ino = 4711};
}

TEST(RejectTest, StepsThatLeadOutOfTheWorkspace) {
  ASSERT_TRUE(IsRead(Taking(Spot::Base("a/b"), Spot::Vault("d0", ""))));
  ASSERT_TRUE(IsRead(Taking(Spot::Base("a/b"), Spot::Vault("d0", "mnt"))));
  for (const std::string& bad : kBadPaths) {
    EXPECT_FALSE(IsRead(Taking(Spot::Base(bad), Spot::Vault("d0", "")))) << bad;
    EXPECT_FALSE(IsRead(Taking(Spot::Vault("n0", ""), Spot::Base(bad)))) << bad;
    EXPECT_FALSE(IsRead(Taking(Spot::Base("a"), Spot::Vault("d0", bad))))
        << bad;
  }
  EXPECT_FALSE(IsRead(Taking(Spot::Base(""), Spot::Vault("d0", ""))));
}

TEST(RejectTest, NamesInAVaultThatAreNoSlots) {
  for (const char* bad : {"", "d", "d0/x", "../x", "/x", "sums", "parts", "x0",
                          "d-1", "n0.old", "d123456789012345678901"}) {
    EXPECT_FALSE(IsRead(Taking(Spot::Base("a"), Spot::Vault(bad, "")))) << bad;
  }
}

CommitStep Setting(uint32_t before, uint32_t after) {
  CommitStep step{.kind = StepKind::kAttributes,
                  .from = Spot::Base("sh"),
                  .to = Spot::Base("sh"),
                  .ino = 4711};
  step.set_before = ObjectAttributes{.mode = before};
  step.set_after = ObjectAttributes{.mode = after};
  return step;
}

TEST(RejectTest, ModesThatNoCommitSets) {
  EXPECT_TRUE(IsRead(Setting(0644, 0755)));
  EXPECT_TRUE(IsRead(Setting(04755, 04700)));
  EXPECT_TRUE(IsRead(Setting(04755, 0755)));
  EXPECT_FALSE(IsRead(Setting(0755, 04755)));
  EXPECT_FALSE(IsRead(Setting(04755, 02755)));
  EXPECT_FALSE(IsRead(Setting(0755, 0100755)));
  CommitStep made = Setting(0755, 04755);
  made.set_before.reset();
  EXPECT_FALSE(IsRead(made));
}

/// To undo `chmod u-s` gives the bit back.
TEST(RejectTest, AnUndoMayGiveBackWhatTheBaseHad) {
  EXPECT_TRUE(IsRead(Setting(0755, 04755), TransactionKind::kUndo));
}

/// An older txfs did not say whose attributes they are: its commits can be
/// undone, and what does that can be read after a crash.
TEST(RejectTest, PlansOfTheFirstVersionStayOfIt) {
  CommitRecord record{.summary = Sound(), .vault = kStoredId};
  record.steps.push_back(Setting(0644, 0755));
  record.steps.back().ino = 0;
  const auto read = DecodeRecord(EncodeRecord(record));
  ASSERT_TRUE(read.has_value());
  record.steps = Inverse(read->steps);
  EXPECT_TRUE(DecodeRecord(EncodeRecord(record)).has_value());
}

/// Since then all plans say it.
TEST(RejectTest, AttributesOfNoObject) {
  CommitRecord record{.summary = Sound(), .vault = kStoredId};
  record.steps.push_back(Setting(0644, 0755));
  Bytes plan = EncodeRecord(record);
  const std::array ino =
      std::bit_cast<std::array<std::byte, 8>>(uint64_t{4711});
  const auto found = std::ranges::search(plan, ino);
  ASSERT_FALSE(found.empty());
  std::ranges::fill(found, std::byte{});
  const size_t end = plan.size() - sizeof(uint64_t);
  const uint64_t sum = Checksum(ByteSpan(plan).first(end));
  std::memcpy(plan.data() + end, &sum, sizeof sum);
  EXPECT_FALSE(DecodeRecord(plan).has_value());
}

TEST(RejectTest, StepsWithOtherPartsThanTheirKindHas) {
  CommitStep step = Setting(0644, 0644);
  step.kind = StepKind::kMove;
  step.ino = 1;
  EXPECT_FALSE(IsRead(step));
  step = Taking(Spot::Base("a"), Spot::Vault("d0", ""));
  step.kind = StepKind::kPatch;
  EXPECT_FALSE(IsRead(step));
  step.kind = StepKind::kExchange;
  EXPECT_FALSE(IsRead(step));
}

TEST(RejectTest, PatchesThatAreNone) {
  CommitStep step{.kind = StepKind::kPatch, .to = Spot::Base("a"), .ino = 1};
  step.before = Delta{.name = "o1", .keep = 9, .size = 9, .ranges = {{2, 9}}};
  step.after = Delta{.name = "p1", .keep = 9, .size = 9, .ranges = {{2, 9}}};
  ASSERT_TRUE(IsRead(step));
  const std::vector<std::function<void(Delta&)>> nonsense = {
      [](Delta& delta) { delta.name = "../../x"; },
      [](Delta& delta) { delta.size = UINT64_MAX; },
      [](Delta& delta) { delta.keep = UINT64_MAX; },
      [](Delta& delta) { delta.ranges = {{2, 10}}; },
      [](Delta& delta) { delta.ranges = {{3, 3}}; },
      [](Delta& delta) { delta.ranges = {{4, 6}, {5, 7}}; },
      [](Delta& delta) { delta.ranges = {{9, 2}}; }};
  for (const auto& spoil : nonsense) {
    CommitStep bad = step;
    spoil(*bad.after);
    EXPECT_FALSE(IsRead(bad));
  }
}

TEST(RejectTest, PlansOfAVaultThatIsNone) {
  for (const std::string& bad : kBadIds) {
    CommitRecord record{.summary = Sound(), .vault = bad};
    EXPECT_FALSE(DecodeRecord(EncodeRecord(record)).has_value()) << bad;
  }
}

/// Of a number of parts that memory does not have.
TEST(RejectTest, CountsOfWhatIsNotThere) {
  Bytes steps;
  Encoder(steps).Put(UINT32_MAX);
  Decoder in(steps);
  DecodeSteps(in);
  EXPECT_FALSE(in.ok());
}

// --- the rest of what undo needs --------------------------------------------

TEST(RejectTest, ImagesOfOtherPlacesAndOrders) {
  for (const std::string& bad : kBadPaths) {
    EXPECT_FALSE(DecodeImage(EncodeImage({{.path = bad}})).has_value()) << bad;
  }
  const ImageEntry a{.path = "a"};
  const ImageEntry b{.path = "b"};
  EXPECT_TRUE(DecodeImage(EncodeImage({a, b})).has_value());
  EXPECT_FALSE(DecodeImage(EncodeImage({b, a})).has_value());
  EXPECT_FALSE(DecodeImage(EncodeImage({a, a})).has_value());
  const ImageEntry typeless{.path = "a", .exists = true, .mode = 0644};
  EXPECT_FALSE(DecodeImage(EncodeImage({typeless})).has_value());
}

TEST(RejectTest, ManifestsAndSumsOfOtherPlaces) {
  for (const std::string& bad : kBadPaths) {
    const VaultManifest path{{.path = bad, .mode = 0100644}};
    EXPECT_FALSE(DecodeManifest(EncodeManifest(path)).has_value()) << bad;
    const VaultManifest mount{{.mount = bad, .path = "d0", .mode = 0100644}};
    EXPECT_FALSE(DecodeManifest(EncodeManifest(mount)).has_value()) << bad;
    EXPECT_FALSE(DecodeSums(EncodeSums({.sums = {{.path = bad}}})).has_value());
    // A NUL ends a part.
    if (bad.find('\0') != std::string::npos) continue;
    EXPECT_FALSE(DecodeParts(bad + std::string(1, '\0')).has_value()) << bad;
  }
  EXPECT_FALSE(DecodeParts(std::string(1, '\0')).has_value());
  EXPECT_FALSE(DecodeParts("mnt").has_value()) << "it has no end";
  for (const std::string& bad : kBadIds) {
    EXPECT_FALSE(DecodeSums(EncodeSums({.complete_for = bad})).has_value());
  }
}

// --- the journal -----------------------------------------------------------

bool IsRead(const Edit& edit) {
  Change change;
  change.edits.push_back(edit);
  Bytes bytes;
  EncodeChange(change, bytes);
  return DecodeChange(bytes).has_value();
}

TEST(RejectTest, NamesThatAreNoNames) {
  const DentryValue child{DentryKind::kInode, Ino{7}};
  ASSERT_TRUE(IsRead(DentryEdit{Ino{2}, "a", {}, child}));
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"),
        std::string("/"), std::string("a\0", 2), std::string(256, 'x')}) {
    EXPECT_FALSE(IsRead(DentryEdit{Ino{2}, bad, {}, child})) << bad;
    Bytes key;
    AppendKey(key, 2);
    Encoder(key).PutRaw(AsBytes(bad));
    Bytes value;
    EncodeDentryValue(child, value);
    EXPECT_FALSE(DecodeDentryRow(key, value).has_value()) << bad;
  }
  EXPECT_FALSE(IsRead(DentryEdit{kNoIno, "a", {}, child}));
  EXPECT_FALSE(
      IsRead(DentryEdit{Ino{2}, "a", {}, {DentryKind::kInode, kNoIno}}));
  EXPECT_FALSE(
      IsRead(DentryEdit{Ino{2}, "a", {}, {DentryKind::kWhiteout, Ino{7}}}));
  EXPECT_FALSE(IsRead(
      DentryEdit{Ino{2}, "a", {}, {DentryKind::kInode, Ino{UINT64_MAX}}}));
}

TEST(RejectTest, OriginsOutsideOfTheBase) {
  const auto edit = [](const std::string& path) {
    InodeRecord record;
    record.base = BaseOrigin{.path = path, .mode = 0100644};
    return InodeEdit{Ino{7}, std::nullopt, record};
  };
  ASSERT_TRUE(IsRead(edit("a/b")));
  for (const std::string& bad : kBadPaths) EXPECT_FALSE(IsRead(edit(bad)));
}

TEST(RejectTest, AttributesAndContentThatNoFileHas) {
  EXPECT_FALSE(IsRead(AttrEdit{Ino{7}, {}, {.mode = 0100644}}));
  EXPECT_FALSE(IsRead(AttrEdit{Ino{7}, {}, {.size = UINT64_MAX}}));
  EXPECT_FALSE(IsRead(AttrEdit{Ino{7}, {}, {.mtime = {0, 1'000'000'000}}}));
  EXPECT_FALSE(IsRead(XattrEdit{Ino{7}, "", {}, "v"}));
  const auto edit = [](Extent extent) {
    return ExtentEdit{Ino{7}, {}, {extent}};
  };
  const ContentRef ref{.segment = 1, .record_length = 100};
  ASSERT_TRUE(IsRead(edit({.offset = 0, .length = 100, .content = ref})));
  EXPECT_FALSE(
      IsRead(edit({.offset = INT64_MAX, .length = 100, .content = ref})));
  ContentRef large = ref;
  large.record_length = UINT32_MAX;
  EXPECT_FALSE(IsRead(edit({.offset = 0, .length = 100, .content = large})));
}

}  // namespace
}  // namespace txfs

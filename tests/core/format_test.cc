#include <gtest/gtest.h>

#include "fs/commit/commit_image.h"
#include "fs/commit/committer.h"
#include "fs/vault/vault_manifest.h"
#include "fs/vault/vault_sums.h"
#include "journal/support/checksum.h"
#include "tests/format_page.h"

namespace txfs {
namespace {

constexpr const char* kId = "01a1fda80390";

/// The example of docs/format.md: a commit that deleted README.md.
CommitRecord ExampleRecord() {
  CommitRecord record;
  record.summary = {.id = kId,
                    .name = "a",
                    .state = TransactionState::kCommitted,
                    .created = {1'700'000'000, 5},
                    .ended = {1'700'000'060, 6},
                    .message = "tidy",
                    .author = "ann",
                    .changes = 1};
  record.vault = kId;
  record.steps.push_back({.kind = StepKind::kMove,
                          .from = Spot::Base("README.md"),
                          .to = Spot::Vault("d0", ""),
                          .ino = 4711});
  return record;
}

TEST(CommitFormatTest, TheExamplePlanIsWhatThePageSays) {
  const Bytes bytes = EncodeRecord(ExampleRecord());
  EXPECT_EQ(Hex(ExampleBytes("commit plan")), Hex(bytes));
  const auto record = DecodeRecord(bytes);
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->steps, ExampleRecord().steps);
}

TEST(CommitFormatTest, TheExampleImageIsWhatThePageSays) {
  const CommitImage image{{.path = "README.md"}};
  const Bytes bytes = EncodeImage(image);
  EXPECT_EQ(Hex(ExampleBytes("commit image")), Hex(bytes));
  const auto decoded = DecodeImage(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, image);
}

TEST(CommitFormatTest, TheExampleManifestIsWhatThePageSays) {
  const VaultManifest manifest{{.path = "d0",
                                .ino = 4711,
                                .mode = 0100644,
                                .uid = 1000,
                                .gid = 1000,
                                .size = 8,
                                .mtime = {1'700'000'000, 5},
                                .ctime = {1'700'000'060, 6}}};
  const Bytes bytes = EncodeManifest(manifest);
  EXPECT_EQ(Hex(ExampleBytes("vault manifest")), Hex(bytes));
  const auto decoded = DecodeManifest(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, manifest);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeManifest(ByteSpan(bytes).first(size)).has_value());
  }
}

TEST(CommitFormatTest, TheExampleSumsAreWhatThePageSays) {
  const VaultSums sums{
      .complete_for = kId,
      .sums = {{.path = "d0",
                .ino = 4711,
                .size = 8,
                .mtime = {1'700'000'000, 5},
                .pieces = {{0, 8, Checksum(AsBytes("read me\n"))}}}}};
  const Bytes bytes = EncodeSums(sums);
  EXPECT_EQ(Hex(ExampleBytes("content sums")), Hex(bytes));
  const auto decoded = DecodeSums(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, sums);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeSums(ByteSpan(bytes).first(size)).has_value());
  }
}

/// Of stores that were written before there were ctimes.
TEST(CommitFormatTest, AManifestOfVersionOneIsRead) {
  Bytes bytes;
  Encoder out(bytes);
  out.PutRaw(AsBytes("TXFSVLT\n"));
  out.Put(uint32_t{1});
  out.Put(uint32_t{1});
  out.PutString("");
  out.PutString("d0");
  out.Put(uint64_t{4711});
  out.Put(uint32_t{0100644});
  out.Put(uint32_t{1000});
  out.Put(uint32_t{1000});
  out.Put(uint64_t{8});
  out.Put(int64_t{1'700'000'000});
  out.Put(uint32_t{5});
  out.Put(uint8_t{0});
  out.Put(uint8_t{1});
  out.Put(Checksum(bytes));
  const auto decoded = DecodeManifest(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, (VaultManifest{{.path = "d0",
                                      .ino = 4711,
                                      .mode = 0100644,
                                      .uid = 1000,
                                      .gid = 1000,
                                      .size = 8,
                                      .mtime = {1'700'000'000, 5},
                                      .sealed = true}}));
}

/// Sums that would have a reader read what there is not.
TEST(CommitFormatTest, ASumThatMakesNoSenseIsDamage) {
  const std::vector<std::vector<SumPiece>> nonsense = {
      {{0, 101, 0}},
      {{101, 0, 0}},
      {{50, 10, 0}, {55, 10, 0}},
      {{0, UINT64_MAX, 0}},
      {{UINT64_MAX, 1, 0}}};
  for (const std::vector<SumPiece>& pieces : nonsense) {
    const VaultSums sums{
        .sums = {{.path = "d0", .size = 100, .pieces = pieces}}};
    EXPECT_FALSE(DecodeSums(EncodeSums(sums)).has_value());
  }
  const VaultSums large{.sums = {{.path = "d0",
                                  .size = kMaxSumPiece + 1,
                                  .pieces = {{0, kMaxSumPiece + 1, 0}}}}};
  EXPECT_FALSE(DecodeSums(EncodeSums(large)).has_value());
}

}  // namespace
}  // namespace txfs

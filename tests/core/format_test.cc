#include <gtest/gtest.h>

#include "fs/commit_image.h"
#include "fs/committer.h"
#include "fs/vault_manifest.h"
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
                                .mtime = {1'700'000'000, 5}}};
  const Bytes bytes = EncodeManifest(manifest);
  EXPECT_EQ(Hex(ExampleBytes("vault manifest")), Hex(bytes));
  const auto decoded = DecodeManifest(bytes);
  ASSERT_TRUE(decoded.has_value());
  EXPECT_EQ(*decoded, manifest);
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeManifest(ByteSpan(bytes).first(size)).has_value());
  }
}

}  // namespace
}  // namespace txfs

#include "fs/fuse/request_counts.h"

#include <gmock/gmock.h>
#include <linux/fuse.h>

namespace txfs {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(RequestCountsTest, NamesWhatCame) {
  RequestCounts counts;
  EXPECT_THAT(counts.Named(), IsEmpty());
  for (uint32_t opcode : {FUSE_READ, FUSE_LOOKUP, FUSE_READ}) {
    counts.Add(opcode);
  }
  EXPECT_THAT(counts.Named(), ElementsAre(Pair("LOOKUP", 1), Pair("READ", 2)));
}

TEST(RequestCountsTest, UnknownKindsAreOther) {
  RequestCounts counts;
  for (const uint32_t opcode : {63U, 64U, 4096U, 0U}) counts.Add(opcode);
  EXPECT_THAT(counts.Named(), ElementsAre(Pair("OTHER", 4)));
}

}  // namespace
}  // namespace txfs

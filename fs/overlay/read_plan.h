#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fs/origin/origin_reader.h"
#include "journal/change.h"
#include "journal/journal.h"

namespace txfs {

/// Where the bytes of a range come from.
struct ReadPiece {
  enum class Source { kZero, kBase, kSpool } source = Source::kZero;
  uint64_t offset = 0;  ///< in the file
  uint64_t length = 0;
  ContentRef content;  ///< kSpool
  uint64_t into = 0;   ///< kSpool: offset in `content`
};

/// Everything needed to read without the tree lock.
struct ReadPlan {
  std::vector<ReadPiece> pieces;
  OriginFile origin;
  std::shared_ptr<Journal> journal;
};

}  // namespace txfs

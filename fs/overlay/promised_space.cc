#include "fs/overlay/promised_space.h"

#include <algorithm>
#include <tuple>

namespace txfs {
namespace {

constexpr uint64_t kBlockBytes = 4096;

/// Blocks that a write of `bytes` may need: its own, one that it begins or ends
/// in, and one for what the filesystem notes about them.
uint64_t BlockBytesFor(uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes +
         2 * kBlockBytes;
}

}  // namespace

Status PromisedSpace::Set(Journal& journal, uint64_t bytes) {
  TRY(journal.SetAside(bytes));
  aside_ = bytes;
  return {};
}

Status PromisedSpace::Promise(Journal& journal, uint64_t bytes) {
  const MutexLock lock(mutex_);
  TRY(Set(journal, std::max<uint64_t>(aside_, needed_ + bytes)));
  needed_ += bytes;
  return {};
}

PromisedSpace::Use::Use(PromisedSpace& space, Journal& journal,
                        const uint64_t& bytes)
    : space_(space), journal_(journal), bytes_(bytes), before_(bytes) {
  if (before_ == 0) return;
  const MutexLock lock(space_.mutex_);
  space_.needed_ -= before_;
  ++space_.uses_;
  const uint64_t aside = space_.aside_;
  const uint64_t freed = std::min(aside, BlockBytesFor(before_));
  if (freed != 0 && space_.Set(journal_, aside - freed)) freed_ = freed;
}

PromisedSpace::Use::~Use() {
  if (before_ == 0) return;
  const MutexLock lock(space_.mutex_);
  space_.needed_ += bytes_;
  --space_.uses_;
  // What was not used. Somebody else may have taken some blocks of it.
  const uint64_t used = std::min(freed_, before_ - bytes_);
  uint64_t back = freed_ - used;
  while (back != 0 && !space_.Set(journal_, space_.aside_ + back)) {
    back -= std::min(back, kBlockBytes);
  }
}

void PromisedSpace::Trim(Journal& journal) {
  if (aside_ <= needed_) return;
  const MutexLock lock(mutex_);
  if (uses_ == 0 && needed_ < aside_) std::ignore = Set(journal, needed_);
}

void PromisedSpace::GiveUp(Journal& journal) {
  const MutexLock lock(mutex_);
  if (aside_ != 0) std::ignore = Set(journal, 0);
}

void PromisedSpace::Restore(Journal& journal) {
  if (aside_ == needed_) return;
  const MutexLock lock(mutex_);
  std::ignore = Set(journal, needed_);
}

void PromisedSpace::JournalEnded() {
  const MutexLock lock(mutex_);
  aside_ = 0;
}

}  // namespace txfs

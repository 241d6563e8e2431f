// The part of Spool that knows what is alive, and gives space back.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "journal/spool.h"

namespace txfs {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr uint64_t kMinHole = 32 << 10;

uint64_t RoundUp(uint64_t value) {
  return (value + kBlock - 1) & ~(kBlock - 1);
}
uint64_t RoundDown(uint64_t value) { return value & ~(kBlock - 1); }

bool IsWorthPunching(uint64_t from, uint64_t to) {
  return RoundDown(to) >= RoundUp(from) + kMinHole;
}

}  // namespace

void Spool::Release(const Extent& extent, Lsn lsn) {
  const ContentRef& ref = extent.content;
  if (ref.segment == 0) return;
  const Place place{ref.segment, ref.record_position};
  Lsn died = kNoLsn;
  {
    MutexLock lock(mutex_);
    const auto [it, inserted] = partial_.try_emplace(
        place, Partial{ref.record_length, ref.record_length, lsn});
    Partial& partial = it->second;
    partial.live -= std::min(partial.live, extent.length);
    partial.lsn = std::max(partial.lsn, lsn);
    if (partial.live > 0) return;
    died = partial.lsn;
    partial_.erase(it);
    if (IsNeeded(place)) {
      retained_[place] = ref.record_length;
      return;
    }
    Kill(place, ref.record_length, died);
  }
  WriterLock lock(pending_mutex_);
  const auto found = pending_.find(place);
  if (found != pending_.end()) found->second.dead = died;
}

// --- savepoints ------------------------------------------------------------

// Staged before the savepoint but logged after it counts as older: kept longer
// than need be, never given up too early.
bool Spool::IsNeeded(const Place& place) const {
  if (newest_savepoint_ == kNoLsn) return false;
  const auto born = born_.find(place);
  return born == born_.end() || born->second < newest_savepoint_;
}

void Spool::Kill(const Place& place, uint32_t length, Lsn lsn) {
  born_.erase(place);
  dead_.push_back({lsn, place, length});
}

void Spool::MarkSavepoint(Lsn lsn) {
  MutexLock lock(mutex_);
  newest_savepoint_ = lsn;
}

void Spool::GoBack(Lsn newest,
                   const std::map<Rewind::Place, Rewind::PastContent>& content,
                   Lsn lsn) {
  MutexLock lock(mutex_);
  newest_savepoint_ = newest;
  for (const auto& [at, past] : content) {
    const Place place{at.first, at.second};
    const auto retained = retained_.find(place);
    const auto partial = partial_.find(place);
    if (past.live == 0) {
      // Came and went since the savepoint; a later one may have kept it.
      if (past.born == kNoLsn || retained == retained_.end()) continue;
      retained_.erase(retained);
      Kill(place, past.length, lsn);
      continue;
    }
    int64_t live = past.length;
    if (partial != partial_.end())
      live = static_cast<int64_t>(partial->second.live);
    if (retained != retained_.end()) {
      live = 0;
      retained_.erase(retained);
    }
    if (partial != partial_.end()) partial_.erase(partial);
    live += past.live;
    if (live <= 0 && past.born == kNoLsn) {
      // A revert had brought it back; older savepoints have it.
      retained_[place] = past.length;
    } else if (live <= 0) {
      Kill(place, past.length, lsn);
    } else if (live < past.length) {
      partial_[place] = {past.length, static_cast<uint64_t>(live), lsn};
    }
  }
}

void Spool::DropSavepoints(Lsn lsn) {
  MutexLock lock(mutex_);
  newest_savepoint_ = kNoLsn;
  born_.clear();
  for (const auto& [place, length] : retained_) {
    dead_.push_back({lsn, place, length});
  }
  retained_.clear();
}

void Spool::AddRetained(const std::vector<Savepoint>& savepoints,
                        const Rewind& since) {
  MutexLock lock(mutex_);
  newest_savepoint_ = savepoints.back().lsn;
  for (const auto& [at, past] : since.content) {
    const Place place{at.first, at.second};
    if (past.born != kNoLsn) born_[place] = past.born;
    if (partial_.contains(place)) continue;
    // Reverted, it is alive although it died once.
    const bool is_alive = past.born == kNoLsn ? past.live <= 0 : past.live < 0;
    const auto first_after =
        std::ranges::upper_bound(savepoints, past.born, {}, &Savepoint::lsn);
    const bool needed = !is_alive && first_after != savepoints.end() &&
                        first_after->lsn < past.died;
    if (needed) {
      retained_[place] = past.length;
    } else {
      born_.erase(place);
    }
  }
}

void Spool::MadeDurable(Lsn lsn) {
  std::vector<Hole> holes;
  {
    MutexLock lock(mutex_);
    std::set<Place> grown;
    while (!dead_.empty() && dead_.front().lsn <= lsn) {
      const Dead dead = dead_.front();
      dead_.pop_front();
      Reclaim(dead.place, dead.length);
      grown.insert(dead.place);
    }
    holes = HolesAt(grown);
  }
  // Not under the lock: punching may wait for the disk.
  for (const Hole& hole : holes) Punch(hole);
}

void Spool::Reclaim(const Place& place, uint32_t length) {
  const auto found = segments_.find(place.segment);
  if (found == segments_.end()) return;
  Segment& segment = found->second;
  segment.unsynced.erase(place.position);
  segment.live -= std::min<uint64_t>(segment.live, length);
  if (segment.live == 0 && place.segment != current_) {
    Remove(place.segment);
    return;
  }
  uint64_t from = place.position;
  uint64_t to = place.position + length;
  auto next = segment.dead.lower_bound(from);
  if (next != segment.dead.end() && next->first == to) {
    to = next->second;
    next = segment.dead.erase(next);
  }
  if (next != segment.dead.begin() && std::prev(next)->second == from) {
    from = std::prev(next)->first;
  }
  segment.dead[from] = to;
}

// Records that died one by one are given back together, when they have become
// a hole that is worth the call.
std::vector<Spool::Hole> Spool::HolesAt(const std::set<Place>& places) {
  std::vector<Hole> holes;
  Place last;
  for (const Place& place : places) {
    const auto found = segments_.find(place.segment);
    if (found == segments_.end()) continue;
    const auto& dead = found->second.dead;
    const auto range = dead.upper_bound(place.position);
    if (range == dead.begin()) continue;
    const auto& [from, to] = *std::prev(range);
    const Place start{place.segment, from};
    if (start == last || !IsWorthPunching(from, to)) continue;
    last = start;
    if (const auto fd = OpenSegment(place.segment, false)) {
      holes.push_back({place.segment, *fd, RoundUp(from), RoundDown(to)});
    }
  }
  return holes;
}

void Spool::Punch(const Hole& hole) const {
  if (!IsInPlace(hole.segment, hole.fd->get())) return;
  // Where holes cannot be punched the space comes back with the segment.
  [[maybe_unused]] const int ignored = io_.Allocate(
      hole.fd->get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
      static_cast<off_t>(hole.from), static_cast<off_t>(hole.to - hole.from));
}

// Commit links segments into the base, where nothing may be punched.
bool Spool::IsInPlace(uint32_t id, int fd) const {
  struct stat ours{};
  struct stat named{};
  return ::fstat(fd, &ours) == 0 &&
         ::fstatat(dir_.get(), SegmentName(id).c_str(), &named,
                   AT_SYMLINK_NOFOLLOW) == 0 &&
         ours.st_ino == named.st_ino && ours.st_dev == named.st_dev &&
         named.st_nlink == 1;
}

void Spool::Remove(uint32_t id) {
  const auto found = segments_.find(id);
  if (found == segments_.end()) return;
  if (found->second.fd) --open_;
  segments_.erase(found);
  // What cannot be deleted now is deleted when the journal is opened again.
  ::unlinkat(dir_.get(), SegmentName(id).c_str(), 0);
}

}  // namespace txfs

#include "journal/spool.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>

#include "journal/base/checksum.h"
#include "journal/base/crash_point.h"
#include "journal/base/file.h"

namespace txfs {
namespace {

constexpr uint64_t kBlock = 4096;
constexpr size_t kMaxOpen = 128;
constexpr size_t kMaxRunBytes = 4 << 20;
constexpr size_t kIdDigits = 8;
constexpr uint64_t kMinHole = 32 << 10;
constexpr uint64_t kIdleGaps = 1 << 20;

uint64_t RoundUp(uint64_t value) {
  return (value + kBlock - 1) & ~(kBlock - 1);
}
uint64_t RoundDown(uint64_t value) { return value & ~(kBlock - 1); }

bool IsWorthPunching(uint64_t from, uint64_t to) {
  return RoundDown(to) >= RoundUp(from) + kMinHole;
}

}  // namespace

std::string SegmentName(uint32_t id) {
  char name[kIdDigits + 1];
  std::snprintf(name, sizeof name, "%08x", id);
  return name;
}

uint32_t SegmentId(std::string_view name) {
  uint32_t id = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), id, 16);
  return error == std::errc() && SegmentName(id) == name ? id : 0;
}

Result<std::unique_ptr<Spool>> Spool::Open(int dir, uint64_t segment_bytes,
                                           Io& io) {
  TRY(MakeDirectoryAt(dir, "spool", 0700));
  UniqueFd fd = TRY(OpenAt(dir, "spool", O_RDONLY | O_DIRECTORY));
  std::unique_ptr<Spool> spool(new Spool(std::move(fd), segment_bytes, io));
  const std::vector<uint32_t> ids = TRY(spool->ListSegments());
  MutexLock lock(spool->mutex_);
  for (const uint32_t id : ids) {
    spool->segments_[id] = {};
    spool->next_id_ = std::max(spool->next_id_, id + 1);
  }
  // Who made them may have died before the names were synced.
  spool->dir_dirty_ = !ids.empty();
  return spool;
}

Result<std::vector<uint32_t>> Spool::ListSegments() {
  std::vector<uint32_t> ids;
  for (const std::string& name : TRY(ListNames(dir_.get(), "."))) {
    if (const uint32_t id = SegmentId(name); id != 0) ids.push_back(id);
  }
  return ids;
}

void Spool::AddLive(const Extent& extent) {
  const ContentRef& ref = extent.content;
  if (ref.segment == 0) return;
  MutexLock lock(mutex_);
  Partial& partial = partial_[{ref.segment, ref.record_position}];
  partial.length = std::max(partial.length, ref.record_length);
  partial.live += extent.length;
}

void Spool::AddOwn(uint32_t segment) {
  if (segment == 0) return;
  MutexLock lock(mutex_);
  // Reserved even when the file is gone: the inode must not share it.
  next_id_ = std::max(next_id_, segment + 1);
  const auto found = segments_.find(segment);
  if (found != segments_.end()) found->second.own = true;
}

Status Spool::FinishLoad() {
  MutexLock lock(mutex_);
  std::map<uint32_t, std::map<uint64_t, uint64_t>> records;
  for (auto it = partial_.begin(); it != partial_.end();) {
    const auto& [place, partial] = *it;
    const uint64_t end = place.position + partial.length;
    records[place.segment][place.position] = end;
    Segment& segment = segments_[place.segment];
    segment.live += partial.length;
    segment.end = std::max(segment.end, end);
    next_id_ = std::max(next_id_, place.segment + 1);
    it = partial.live == partial.length ? partial_.erase(it) : std::next(it);
  }
  for (const auto& [place, length] : retained_) {
    const uint64_t end = place.position + length;
    records[place.segment][place.position] = end;
    Segment& segment = segments_[place.segment];
    segment.live += length;
    segment.end = std::max(segment.end, end);
    next_id_ = std::max(next_id_, place.segment + 1);
  }
  std::vector<uint32_t> unused;
  for (auto& [id, segment] : segments_) {
    if (segment.live == 0 && !segment.own) {
      unused.push_back(id);
    } else {
      FindGaps(id, segment, records[id]);
    }
  }
  for (const uint32_t id : unused) Remove(id);
  return {};
}

// A daemon that died may have left what it was about to give back.
void Spool::FindGaps(uint32_t id, Segment& segment,
                     const std::map<uint64_t, uint64_t>& records) {
  uint64_t at = 0;
  for (const auto& [from, to] : records) {
    if (at < from) segment.dead[at] = from;
    at = std::max(at, to);
  }
  struct stat st{};
  if (::fstatat(dir_.get(), SegmentName(id).c_str(), &st, 0) != 0) return;
  const auto blocks = static_cast<uint64_t>(st.st_blocks) * 512;
  if (blocks <= segment.live + kIdleGaps) return;
  std::set<Place> gaps;
  for (const auto& [from, to] : segment.dead) gaps.insert({id, from});
  for (const Hole& hole : HolesAt(gaps)) Punch(hole);
}

Result<uint32_t> Spool::AddSegment() {
  if (next_id_ == 0) return Fail(ENOSPC, "no segment numbers are left");
  const uint32_t id = next_id_++;
  segments_[id] = {};
  return id;
}

Result<uint32_t> Spool::NewSegment() {
  MutexLock lock(mutex_);
  const uint32_t id = TRY(AddSegment());
  segments_[id].own = true;
  const auto fd = OpenSegment(id, true);
  if (fd) return id;
  segments_.erase(id);
  return std::unexpected(fd.error());
}

Result<Spool::Place> Spool::TakePlace(uint64_t size, uint32_t own_segment,
                                      uint64_t own_position) {
  if (own_segment != 0) {
    const auto own = segments_.find(own_segment);
    // Written once, never again: what is there may be pointed at by tables
    // that power loss could bring back.
    if (own != segments_.end() && own->second.own &&
        own_position >= own->second.end) {
      own->second.end = own_position + size;
      own->second.live += size;
      return Place{own_segment, own_position};
    }
  }
  if (current_ == 0) current_ = TRY(AddSegment());
  Segment& segment = segments_[current_];
  const Place place{current_, segment.end};
  segment.end += size;
  segment.live += size;
  if (segment.end >= segment_bytes_) current_ = 0;
  return place;
}

Result<StagedContent> Spool::Stage(ByteSpan bytes, uint32_t own_segment,
                                   uint64_t own_position) {
  if (bytes.empty() || bytes.size() > kRecordContentMax) {
    return Fail(EINVAL, "stage content");
  }
  StagedContent staged;
  staged.ref.record_length = static_cast<uint32_t>(bytes.size());
  staged.ref.checksum = Checksum(bytes);
  {
    MutexLock lock(mutex_);
    const Place place = TRY(TakePlace(bytes.size(), own_segment, own_position));
    staged.ref.segment = place.segment;
    staged.ref.record_position = place.position;
    if (newest_savepoint_ != kNoLsn) born_[place] = newest_savepoint_;
  }
  if (own_segment == 0 && bytes.size() <= kInlineContentMax) {
    staged.inline_bytes = bytes;
    return staged;
  }
  const PendingContent content{staged.ref, bytes};
  const Status written = WriteRun({&content, 1});
  if (!written) {
    Abandon(staged.ref);
    return std::unexpected(written.error());
  }
  return staged;
}

Status Spool::LinkSegment(uint32_t id, int directory, const std::string& name) {
  MutexLock lock(mutex_);
  const auto found = segments_.find(id);
  if (found == segments_.end() || !found->second.own) {
    return Fail(ENOENT, "segment of one file");
  }
  if (newest_savepoint_ != kNoLsn) return Fail(EBUSY, "savepoint");
  if (::linkat(dir_.get(), SegmentName(id).c_str(), directory, name.c_str(),
               0) != 0) {
    return Fail(errno, "link segment");
  }
  return {};
}

void Spool::GiveUpLinked() {
  MutexLock lock(mutex_);
  bool gave_up = false;
  for (const auto& [id, segment] : segments_) {
    const std::string name = SegmentName(id);
    struct stat st{};
    if (!segment.own || ::fstatat(dir_.get(), name.c_str(), &st, 0) != 0 ||
        st.st_nlink == 1) {
      continue;
    }
    CrashPoint();
    gave_up = ::unlinkat(dir_.get(), name.c_str(), 0) == 0 || gave_up;
  }
  // Lest a name comes back with power loss: a file of the base would have one
  // too many until the trash is emptied.
  if (gave_up) std::ignore = SyncDirectory(dir_.get(), ".");
}

void Spool::Abandon(const ContentRef& ref) {
  MutexLock lock(mutex_);
  born_.erase({ref.segment, ref.record_position});
  const auto found = segments_.find(ref.segment);
  if (found == segments_.end()) return;
  Segment& segment = found->second;
  if (segment.end != ref.record_position + ref.record_length) {
    Reclaim({ref.segment, ref.record_position}, ref.record_length);
    return;
  }
  segment.end = ref.record_position;
  segment.live -= ref.record_length;
  segment.unsynced.erase(ref.record_position);
}

void Spool::AddPending(const ContentRef& ref, ByteSpan bytes) {
  WriterLock lock(pending_mutex_);
  pending_[{ref.segment, ref.record_position}] = {bytes, kNoLsn};
}

bool Spool::IsDead(const ContentRef& ref, Lsn last) {
  ReaderLock lock(pending_mutex_);
  const auto found = pending_.find({ref.segment, ref.record_position});
  return found != pending_.end() && found->second.dead != kNoLsn &&
         found->second.dead <= last;
}

Status Spool::Write(std::vector<PendingContent> contents, Lsn last) {
  std::erase_if(contents, [&](const PendingContent& content) {
    return IsDead(content.ref, last);
  });
  std::ranges::sort(contents, {}, [](const PendingContent& content) {
    return Place{content.ref.segment, content.ref.record_position};
  });
  const std::span<const PendingContent> all(contents);
  size_t first = 0;
  while (first < all.size()) {
    const ContentRef& start = all[first].ref;
    uint64_t end = start.record_position;
    size_t next = first;
    while (next < all.size() && all[next].ref.segment == start.segment &&
           all[next].ref.record_position == end &&
           end - start.record_position < kMaxRunBytes) {
      end += all[next++].bytes.size();
    }
    TRY(WriteRun(all.subspan(first, next - first)));
    first = next;
  }
  return {};
}

Status Spool::WriteRun(std::span<const PendingContent> run) {
  const ContentRef& start = run.front().ref;
  SharedFd fd;
  uint64_t failures = 0;
  {
    MutexLock lock(mutex_);
    fd = TRY(OpenSegment(start.segment, true));
    Segment& segment = segments_[start.segment];
    segment.dirty = true;
    failures = segment.failures;
  }
  std::vector<ByteSpan> parts;
  for (const PendingContent& content : run) parts.push_back(content.bytes);
  TRY(WritePartsFully(io_, fd->get(), start.record_position, std::move(parts)));
  MutexLock lock(mutex_);
  const auto found = segments_.find(start.segment);
  if (found == segments_.end()) return {};
  for (const PendingContent& content : run) {
    MarkUnsynced(found->second, content.ref);
  }
  // A sync that failed meanwhile may have been about these bytes.
  if (found->second.failures != failures) found->second.suspect = true;
  return {};
}

// A sync between the first mark and the write would have taken it away.
void Spool::MarkUnsynced(Segment& segment, const ContentRef& ref) {
  segment.dirty = true;
  segment.unsynced[ref.record_position] = {ref.record_length, ref.checksum,
                                           ++writes_};
}

void Spool::DropPending(const std::vector<PendingContent>& contents) {
  WriterLock lock(pending_mutex_);
  for (const PendingContent& content : contents) {
    pending_.erase({content.ref.segment, content.ref.record_position});
  }
}

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
    if (live <= 0) {
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
    const bool needed = std::ranges::any_of(savepoints, [&](const auto& mark) {
      return past.born < mark.lsn && mark.lsn < past.died;
    });
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
         ::fstatat(dir_.get(), SegmentName(id).c_str(), &named, 0) == 0 &&
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

Result<Spool::SharedFd> Spool::OpenSegment(uint32_t id, bool create) {
  const auto found = segments_.find(id);
  if (found == segments_.end() && !create) {
    return Fail(EIO, "spool segment " + SegmentName(id) + " is missing");
  }
  Segment& segment = segments_[id];
  segment.last_use = ++uses_;
  if (segment.fd) return segment.fd;
  auto fd = OpenAt(dir_.get(), SegmentName(id), O_RDWR | (create ? O_CREAT : 0),
                   0600);
  if (!fd && fd.error().code == ENOENT) {
    return Fail(EIO, "spool segment " + SegmentName(id) + " is missing");
  }
  if (!fd) return std::unexpected(std::move(fd).error());
  if (create) dir_dirty_ = true;
  CloseIdle();
  segment.fd = std::make_shared<UniqueFd>(std::move(*fd));
  ++open_;
  return segment.fd;
}

// A dirty segment stays open: an error of its write-back is told to the
// descriptors that are open then.
void Spool::CloseIdle() {
  if (open_ < kMaxOpen) return;
  Segment* oldest = nullptr;
  for (auto& [id, segment] : segments_) {
    if (!segment.fd || segment.dirty) continue;
    if (oldest == nullptr || segment.last_use < oldest->last_use) {
      oldest = &segment;
    }
  }
  if (oldest == nullptr) return;
  oldest->fd.reset();
  --open_;
}

bool Spool::CopyPending(const ContentRef& ref, uint64_t offset,
                        MutableByteSpan out) {
  ReaderLock lock(pending_mutex_);
  if (pending_.empty()) return false;
  const auto found = pending_.find({ref.segment, ref.record_position});
  if (found == pending_.end() ||
      found->second.bytes.size() != ref.record_length) {
    return false;
  }
  std::ranges::copy(found->second.bytes.subspan(offset, out.size()),
                    out.begin());
  return true;
}

Status Spool::Read(const ContentRef& ref, uint64_t offset,
                   MutableByteSpan out) {
  if (ref.segment == 0) {
    std::ranges::fill(out, std::byte{0});
    return {};
  }
  const uint64_t from = ref.delta + offset;
  if (from < offset || from > ref.record_length ||
      out.size() > ref.record_length - from) {
    return Fail(EINVAL, "read past the end of a spool record");
  }
  if (CopyPending(ref, from, out)) return {};
  SharedFd fd;
  {
    MutexLock lock(mutex_);
    fd = TRY(OpenSegment(ref.segment, false));
  }
  const size_t size =
      TRY(ReadFully(fd->get(), ref.record_position + from, out));
  if (size == out.size() &&
      (size != ref.record_length || Checksum(out) == ref.checksum)) {
    return {};
  }
  return Fail(EIO, "content in " + PathOfFd(fd->get()) + " at " +
                       std::to_string(ref.record_position) + " is damaged");
}

bool Spool::Verify(const ContentRef& ref) {
  if (ref.record_length == 0 || ref.record_length > kRecordContentMax) {
    return false;
  }
  Bytes bytes(ref.record_length);
  if (!Read(ref, 0, bytes)) return false;
  // Who wrote it may have died before it was synced.
  MutexLock lock(mutex_);
  const auto found = segments_.find(ref.segment);
  if (found != segments_.end()) MarkUnsynced(found->second, ref);
  return true;
}

Status Spool::SyncDirty() {
  MutexLock syncing(sync_mutex_);
  std::vector<Dirty> dirty;
  uint64_t until = 0;
  bool dir_dirty = false;
  {
    MutexLock lock(mutex_);
    dirty = TakeDirty();
    until = writes_;
    dir_dirty = std::exchange(dir_dirty_, false);
  }
  Status synced;
  for (const Dirty& each : dirty) {
    Status status = SyncSegment(each, until);
    if (!status) synced = std::move(status);
  }
  if (synced && dir_dirty) synced = SyncDirectory(dir_.get(), ".");
  if (synced) return {};
  MutexLock lock(mutex_);
  dir_dirty_ = dir_dirty_ || dir_dirty;
  return synced;
}

std::vector<Spool::Dirty> Spool::TakeDirty() {
  std::vector<Dirty> dirty;
  for (auto& [id, segment] : segments_) {
    if (segment.dirty && segment.fd) dirty.push_back({id, segment.fd});
    segment.dirty = false;
  }
  return dirty;
}

// The kernel takes pages that it failed to write for clean: syncing them again
// would succeed and mean nothing.
Status Spool::SyncSegment(const Dirty& dirty, uint64_t until) {
  Status status;
  {
    MutexLock lock(mutex_);
    const auto found = segments_.find(dirty.segment);
    if (found == segments_.end()) return {};
    if (found->second.suspect) status = Rewrite(found->second);
  }
  if (status && io_.Sync(dirty.fd->get()) != 0) {
    status = Fail(errno, "sync " + PathOfFd(dirty.fd->get()));
  }
  MutexLock lock(mutex_);
  const auto found = segments_.find(dirty.segment);
  if (found == segments_.end()) return status;
  Segment& segment = found->second;
  if (status) {
    std::erase_if(segment.unsynced, [&](const auto& record) {
      return record.second.time <= until;
    });
    return {};
  }
  segment.dirty = true;
  segment.suspect = true;
  ++segment.failures;
  // At once, while the pages are still in memory.
  [[maybe_unused]] const Status rewritten = Rewrite(segment);
  return status;
}

Status Spool::Rewrite(Segment& segment) {
  for (const auto& [position, record] : segment.unsynced) {
    Bytes bytes(record.length);
    const size_t size = TRY(ReadFully(segment.fd->get(), position, bytes));
    if (size != bytes.size() || Checksum(bytes) != record.checksum) {
      return Fail(EIO, "the disk lost content that was written to " +
                           PathOfFd(segment.fd->get()));
    }
    TRY(WritePartsFully(io_, segment.fd->get(), position, {bytes}));
  }
  segment.suspect = false;
  return {};
}

Result<uint64_t> Spool::StoreBytes() {
  uint64_t bytes = 0;
  for (const uint32_t id : TRY(ListSegments())) {
    struct stat st{};
    if (::fstatat(dir_.get(), SegmentName(id).c_str(), &st, 0) == 0) {
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    }
  }
  return bytes;
}

}  // namespace txfs

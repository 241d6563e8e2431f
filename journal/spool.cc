#include "journal/spool.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <tuple>

#include "journal/support/checksum.h"
#include "journal/support/crash_point.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr const char* kSpoolDirectory = "spool";
constexpr size_t kMaxOpen = 128;
constexpr size_t kMaxRunBytes = 4 << 20;
constexpr size_t kSegmentDigits = 8;
constexpr uint64_t kIdleGaps = 1 << 20;

}  // namespace

std::string SegmentName(uint32_t id) {
  char name[kSegmentDigits + 1];
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
  TRY(MakeDirectoryAt(dir, kSpoolDirectory, 0700));
  UniqueFd fd = TRY(OpenDirectoryBelow(dir, kSpoolDirectory));
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
  if (::fstatat(dir_.get(), SegmentName(id).c_str(), &st,
                AT_SYMLINK_NOFOLLOW) != 0)
    return;
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
                                   uint64_t own_position, bool at_once) {
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
  if (!at_once && own_segment == 0 && bytes.size() <= kInlineContentMax) {
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

Status Spool::GiveUpLinked(int dir) {
  const UniqueFd spool = TRY(OpenDirectoryBelow(dir, kSpoolDirectory));
  bool gave_up = false;
  for (const std::string& name : TRY(ListNames(spool.get(), "."))) {
    struct stat st{};
    if (::fstatat(spool.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0 ||
        st.st_nlink == 1) {
      continue;
    }
    CrashPoint();
    if (::unlinkat(spool.get(), name.c_str(), 0) != 0) {
      return Fail(errno, "unlink segment " + name);
    }
    gave_up = true;
  }
  // Lest a name comes back with power loss.
  if (gave_up) TRY(SyncDirectory(spool.get(), "."));
  return {};
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
  if (segment.own && segment.live == 0) Remove(ref.segment);
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

std::unexpected<Error> Spool::Missing(uint32_t id) const {
  return Fail(EIO,
              "spool segment " + PathOfFd(dir_.get()) + "/" + SegmentName(id) +
                  " is missing",
              "`txfs fsck` names the damaged file; restore the segment, or "
              "drop the file's changes with `txfs discard PATH`");
}

Result<Spool::SharedFd> Spool::OpenSegment(uint32_t id, bool create) {
  const auto found = segments_.find(id);
  if (found == segments_.end() && !create) {
    return Missing(id);
  }
  Segment& segment = segments_[id];
  segment.last_use = ++uses_;
  if (segment.fd) return segment.fd;
  auto fd = OpenFileBelow(dir_.get(), SegmentName(id),
                          O_RDWR | (create ? O_CREAT : 0), 0600);
  if (!fd && fd.error().code == ENOENT) {
    return Missing(id);
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
    if (::fstatat(dir_.get(), SegmentName(id).c_str(), &st,
                  AT_SYMLINK_NOFOLLOW) == 0) {
      bytes += static_cast<uint64_t>(st.st_blocks) * 512;
    }
  }
  return bytes;
}

}  // namespace txfs

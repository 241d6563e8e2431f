#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "journal/change.h"
#include "journal/journal.h"
#include "journal/rewind.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/io.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Content that moves from the intake to its place in the spool.
struct PendingContent {
  ContentRef ref;
  ByteSpan bytes;
};

/// The file name of segment `id` in `spool/`.
[[nodiscard]] std::string SegmentName(uint32_t id);
/// 0 when `name` is not a segment's.
[[nodiscard]] uint32_t SegmentId(std::string_view name);

/// Content of files: append-only segments `spool/<id>` (docs/format.md).
///
/// Each place is used once while the object lives. Thread-safe.
class Spool {
 public:
  /// Opens `spool/` in `dir`. Then recovery calls Write and Verify, then
  /// AddLive and AddOwn for everything in the tables, then FinishLoad.
  static Result<std::unique_ptr<Spool>> Open(int dir, uint64_t segment_bytes,
                                             Io& io);

  /// An extent of the tables refers to this content.
  void AddLive(const Extent& extent);
  /// `segment` is the own segment of an inode in the tables.
  void AddOwn(uint32_t segment);
  /// Deletes unused segments and frees dead space.
  Status FinishLoad();

  /// As Journal::Stage. `at_once`: content of any size is written at once.
  Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment,
                              uint64_t own_position, bool at_once = false);
  Result<uint32_t> NewSegment();
  /// As Journal.
  Status LinkSegment(uint32_t id, int directory, const std::string& name);
  static Status GiveUpLinked(int dir);
  void Abandon(const ContentRef& ref);

  /// Makes content readable at `bytes` until DropPending.
  void AddPending(const ContentRef& ref, ByteSpan bytes);
  /// Writes content to its place, except content that died up to `last`.
  Status Write(std::vector<PendingContent> contents, Lsn last);
  void DropPending(const std::vector<PendingContent>& contents);

  /// As Journal::Release.
  void Release(const Extent& extent, Lsn lsn);
  /// After power loss, the tables still have everything up to `lsn`: frees what
  /// died until then.
  void MadeDurable(Lsn lsn);

  /// From now on, keeps the existing content after its last extent is gone:
  /// savepoint `lsn` needs it.
  void MarkSavepoint(Lsn lsn);
  /// Makes `newest` the newest savepoint, after later ones were dropped.
  /// Content becomes live, or dead as of `lsn`, as `content` says.
  void GoBack(Lsn newest,
              const std::map<Rewind::Place, Rewind::PastContent>& content,
              Lsn lsn);
  /// Drops all savepoints: what was kept only for them is dead as of `lsn`.
  void DropSavepoints(Lsn lsn);
  /// Keeps what `savepoints` need, computed from the changes since the oldest
  /// of them. Call it after AddLive and before FinishLoad.
  void AddRetained(const std::vector<Savepoint>& savepoints,
                   const Rewind& since);

  /// As Journal::Read.
  Status Read(const ContentRef& ref, uint64_t offset, MutableByteSpan out);
  /// Whether the record in its place is intact.
  bool Verify(const ContentRef& ref);

  /// Makes all content written before the call survive power loss. After a
  /// failure, the content that was not synced must be written once more: EIO
  /// until that succeeds.
  Status SyncDirty();

  /// Bytes of blocks on disk.
  Result<uint64_t> StoreBytes();

 private:
  // Shared with reads and syncs in progress, which need it to stay open.
  using SharedFd = std::shared_ptr<UniqueFd>;

  /// A record that was written but not synced.
  struct Unsynced {
    uint32_t length = 0;
    uint64_t checksum = 0;
    uint64_t time = 0;  ///< of the write, counted by writes_
  };
  struct Segment {
    SharedFd fd;        ///< null while not open
    uint64_t end = 0;   ///< end of the last record
    uint64_t live = 0;  ///< bytes of records that are not dead
    bool own = false;   ///< the segment of one file
    bool dirty = false;
    bool suspect = false;   ///< a sync failed: unsynced records may be neither
                            ///< on the disk nor scheduled for write-back
    uint64_t failures = 0;  ///< of syncs
    std::map<uint64_t, Unsynced> unsynced;  ///< by position
    uint64_t last_use = 0;
    std::map<uint64_t, uint64_t> dead;  ///< from → to; disjoint, not adjacent
  };
  struct Place {
    uint32_t segment = 0;
    uint64_t position = 0;
    auto operator<=>(const Place&) const = default;
  };
  struct PlaceHash {
    size_t operator()(const Place& place) const noexcept {
      return (place.position ^ (uint64_t{place.segment} << 40)) *
             0x9E3779B97F4A7C15ULL;
    }
  };
  struct Partial {
    uint32_t length = 0;  ///< of the record
    uint64_t live = 0;    ///< bytes of it to which extents refer
    Lsn lsn = kNoLsn;     ///< last release
  };
  struct Dead {
    Lsn lsn;
    Place place;
    uint32_t length = 0;
  };
  struct Hole {
    uint32_t segment = 0;
    SharedFd fd;
    uint64_t from = 0, to = 0;  ///< whole blocks
  };
  struct Pending {
    ByteSpan bytes;
    Lsn dead = kNoLsn;  ///< LSN as of which no extent refers to it
  };
  [[nodiscard]] bool IsNeeded(const Place& place) const REQUIRES(mutex_);
  void Kill(const Place& place, uint32_t length, Lsn lsn) REQUIRES(mutex_);

  Spool(UniqueFd dir, uint64_t segment_bytes, Io& io)
      : dir_(std::move(dir)), segment_bytes_(segment_bytes), io_(io) {}
  Result<std::vector<uint32_t>> ListSegments();
  Result<uint32_t> AddSegment() REQUIRES(mutex_);
  Result<Place> TakePlace(uint64_t size, uint32_t own_segment,
                          uint64_t own_position) REQUIRES(mutex_);
  [[nodiscard]] std::unexpected<Error> Missing(uint32_t id) const;
  Result<SharedFd> OpenSegment(uint32_t id, bool create) REQUIRES(mutex_);
  void CloseIdle() REQUIRES(mutex_);
  /// Writes adjacent records.
  Status WriteRun(std::span<const PendingContent> run);
  void MarkUnsynced(Segment& segment, const ContentRef& ref) REQUIRES(mutex_);
  struct Dirty {
    uint32_t segment = 0;
    SharedFd fd;
  };
  std::vector<Dirty> TakeDirty() REQUIRES(mutex_);
  Status SyncSegment(const Dirty& dirty, uint64_t until);
  Status Rewrite(Segment& segment) REQUIRES(mutex_);
  bool CopyPending(const ContentRef& ref, uint64_t offset, MutableByteSpan out);
  bool IsDead(const ContentRef& ref, Lsn last);
  void Reclaim(const Place& place, uint32_t length) REQUIRES(mutex_);
  std::vector<Hole> HolesAt(const std::set<Place>& places) REQUIRES(mutex_);
  void Punch(const Hole& hole) const;
  bool IsInPlace(uint32_t id, int fd) const;
  void FindGaps(uint32_t id, Segment& segment,
                const std::map<uint64_t, uint64_t>& records) REQUIRES(mutex_);
  void Remove(uint32_t id) REQUIRES(mutex_);

  const UniqueFd dir_;
  const uint64_t segment_bytes_;
  Io& io_;

  /// Held during a whole SyncDirty: a second caller must not find segments
  /// marked clean before they are synced.
  Mutex sync_mutex_;
  Mutex mutex_ ACQUIRED_AFTER(sync_mutex_);
  std::map<uint32_t, Segment> segments_ GUARDED_BY(mutex_);
  uint32_t current_ GUARDED_BY(mutex_) = 0;  ///< the shared segment; 0: none
  uint32_t next_id_ GUARDED_BY(mutex_) = 1;
  uint64_t uses_ GUARDED_BY(mutex_) = 0;
  uint64_t writes_ GUARDED_BY(mutex_) = 0;
  size_t open_ GUARDED_BY(mutex_) = 0;
  bool dir_dirty_ GUARDED_BY(mutex_) = false;
  std::unordered_map<Place, Partial, PlaceHash> partial_ GUARDED_BY(mutex_);
  std::deque<Dead> dead_ GUARDED_BY(mutex_);
  Lsn newest_savepoint_ GUARDED_BY(mutex_) = kNoLsn;
  /// The savepoint, or a later change, after which a record was added; none:
  /// before all savepoints.
  std::unordered_map<Place, Lsn, PlaceHash> born_ GUARDED_BY(mutex_);
  /// Lengths of records that only savepoints need.
  std::unordered_map<Place, uint32_t, PlaceHash> retained_ GUARDED_BY(mutex_);

  SharedMutex pending_mutex_;
  std::unordered_map<Place, Pending, PlaceHash> pending_
      GUARDED_BY(pending_mutex_);
};

}  // namespace txfs

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

/// A record's content on its way from the intake to its place.
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
/// A place is given once and never again while the object lives. Thread-safe.
class Spool {
 public:
  /// Opens `spool/` in `dir`. Then come Write and Verify of recovery, AddLive
  /// and AddOwn for all that the tables have, and FinishLoad.
  static Result<std::unique_ptr<Spool>> Open(int dir, uint64_t segment_bytes,
                                             Io& io);

  /// An extent of the tables points at this.
  void AddLive(const Extent& extent);
  /// An inode of the tables has this as its own segment.
  void AddOwn(uint32_t segment);
  /// Deletes segments nothing points at, and gives dead space back.
  Status FinishLoad();

  /// As Journal::Stage.
  Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment,
                              uint64_t own_position);
  Result<uint32_t> NewSegment();
  /// As Journal.
  Status LinkSegment(uint32_t id, int directory, const std::string& name);
  static Status GiveUpLinked(int dir);
  void Abandon(const ContentRef& ref);

  /// Content that can be read at `bytes` until DropPending.
  void AddPending(const ContentRef& ref, ByteSpan bytes);
  /// Puts content into its place, except what died up to `last`.
  Status Write(std::vector<PendingContent> contents, Lsn last);
  void DropPending(const std::vector<PendingContent>& contents);

  /// As Journal::Release.
  void Release(const Extent& extent, Lsn lsn);
  /// Power loss cannot take the tables back behind `lsn`: what died until then
  /// is given back.
  void MadeDurable(Lsn lsn);

  /// From now on, content that is there is kept when nothing points at it any
  /// more: savepoint `lsn` needs it.
  void MarkSavepoint(Lsn lsn);
  /// The newest savepoint is `newest` now, and later ones are gone. What came
  /// and went as `content` says is alive, or dead as of `lsn`.
  void GoBack(Lsn newest,
              const std::map<Rewind::Place, Rewind::PastContent>& content,
              Lsn lsn);
  /// No savepoint is left: what was kept for one is dead as of `lsn`.
  void DropSavepoints(Lsn lsn);
  /// After AddLive, before FinishLoad: takes up what `savepoints` need, going
  /// by the changes since the oldest of them.
  void AddRetained(const std::vector<Savepoint>& savepoints,
                   const Rewind& since);

  /// As Journal::Read.
  Status Read(const ContentRef& ref, uint64_t offset, MutableByteSpan out);
  /// Whether the record lies in its place, unharmed.
  bool Verify(const ContentRef& ref);

  /// All content written before the call survives power loss. After a failure
  /// what was not synced is written once more: EIO until that succeeds.
  Status SyncDirty();

  /// Bytes of blocks.
  Result<uint64_t> StoreBytes();

 private:
  // Shared with reads and syncs under way, which must not have it closed
  // under them.
  using SharedFd = std::shared_ptr<UniqueFd>;

  /// A record that was written and not synced yet.
  struct Unsynced {
    uint32_t length = 0;
    uint64_t checksum = 0;
    uint64_t time = 0;  ///< when it was written, by writes_
  };
  struct Segment {
    SharedFd fd;        ///< null while not open
    uint64_t end = 0;   ///< where the next record goes
    uint64_t live = 0;  ///< bytes of records that are not dead
    bool own = false;   ///< of one file
    bool dirty = false;
    bool suspect = false;   ///< unsynced records may be neither on the disk nor
                            ///< going there: a sync failed
    uint64_t failures = 0;  ///< of syncs
    std::map<uint64_t, Unsynced> unsynced;  ///< by position
    uint64_t last_use = 0;
    std::map<uint64_t, uint64_t> dead;  ///< from → to, disjoint, not touching
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
    uint64_t live = 0;    ///< bytes of it that extents point at
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
    Lsn dead = kNoLsn;  ///< as of which nothing points at it
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
  /// Writes records that lie one behind the other.
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

  /// Held over a whole SyncDirty: who comes second must not find the segments
  /// clean before they are.
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
  /// The savepoint, or a later change, after which a record came; none: before
  /// all of them.
  std::unordered_map<Place, Lsn, PlaceHash> born_ GUARDED_BY(mutex_);
  /// Lengths of records that nothing but a savepoint needs.
  std::unordered_map<Place, uint32_t, PlaceHash> retained_ GUARDED_BY(mutex_);

  SharedMutex pending_mutex_;
  std::unordered_map<Place, Pending, PlaceHash> pending_
      GUARDED_BY(pending_mutex_);
};

}  // namespace txfs

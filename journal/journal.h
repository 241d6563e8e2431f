#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/change.h"
#include "journal/denials.h"
#include "journal/rewind.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/io.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

class Io;

struct JournalOptions {
  uint64_t intake_bytes = 8 << 20;  ///< largest ring capacity
  /// Ring capacity of a new journal. The ring grows when changes come faster
  /// than they are drained.
  uint64_t first_intake_bytes = 512 << 10;
  uint64_t map_bytes =
      16ULL << 30;  ///< initial size of the LMDB map; grows when full
  uint64_t segment_bytes = 256ULL
                           << 20;  ///< a shared segment is closed at this size
  uint32_t drain_interval_ms =
      200;  ///< the longest time that a record waits in the intake
  bool background_drain = true;  ///< tests set it to false and call Drain()
  Io* io = nullptr;  ///< for tests with a failing disk; null: the system's
};

/// Largest content inside an intake record, bytes.
inline constexpr uint32_t kInlineContentMax = 16 << 10;
/// Largest content of one record, bytes; the caller splits larger writes.
inline constexpr uint32_t kRecordContentMax = 1 << 20;

/// Content that has a place in the spool, but no change that refers to it yet.
/// Pass it to Append with the change, or to Abandon.
struct StagedContent {
  ContentRef ref;
  ByteSpan inline_bytes;  ///< borrowed from the caller; empty if already in the
                          ///< spool
};

/// The journal of one transaction: intake ring, spool and LMDB tables
/// (docs/format.md).
///
/// Thread-safe. Call Append in the order in which changes are applied (the
/// caller holds its tree lock). All errors of a full store are ENOSPC or
/// EDQUOT; nothing acknowledged is lost.
class Journal {
 public:
  /// Makes `intake`, `spool/`, `db/` in the empty directory `dir` (an open
  /// descriptor).
  static Result<std::unique_ptr<Journal>> Create(
      UniqueFd dir, const JournalOptions& options = {});

  /// Opens what Create made and has not been opened since.
  static Result<std::unique_ptr<Journal>> OpenUnused(
      UniqueFd dir, const JournalOptions& options = {});

  /// Opens and recovers: replays the intake into the tables, then starts a new
  /// epoch. EBADMSG: damaged, with path and remedy; EPROTONOSUPPORT: a newer
  /// format version.
  static Result<std::unique_ptr<Journal>> Open(
      UniqueFd dir, const JournalOptions& options = {});

  /// In the journal in directory `dir`: unlinks the segments that have another
  /// name from LinkSegment. They are no longer content of the journal. Durable.
  static Status GiveUpLinked(int dir);

  /// Stops the drain thread and drains. What cannot be drained stays in the
  /// intake.
  virtual ~Journal() = default;

  /// Feeds every record of the tables to `state`: inodes, then dentries,
  /// extents, xattrs.
  virtual Status Load(State& state) = 0;

  /// Gives `bytes` (1 … kRecordContentMax) a place in the spool. Content over
  /// kInlineContentMax is written there before this returns. With `own_segment`
  /// not 0, the place is `own_position` in that segment if it is free, and
  /// content of any size is written at once. `promised`: space was set aside
  /// for it, so it is written at once, and taken without a reserve.
  virtual Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment = 0,
                                      uint64_t own_position = 0,
                                      bool promised = false) = 0;
  /// Makes a segment for one large file.
  virtual Result<uint32_t> NewSegment() = 0;
  /// Gives such a segment the further name `name` in `directory`. From then on,
  /// no holes are punched in it, and the caller may write where no extent
  /// points. Drain first. EBUSY while there are savepoints, which may need the
  /// old content.
  virtual Status LinkSegment(uint32_t segment, int directory,
                             const std::string& name) = 0;
  /// Sets `bytes` of disk space aside, with what the tables need beside it, for
  /// content that has a promise; what it had above that is free. A write for
  /// which there is a promise first lowers it. Lasts as long as the journal is
  /// open. ENOSPC, EDQUOT, EOPNOTSUPP: nothing changed.
  virtual Status SetAside(uint64_t bytes) = 0;
  /// Gives up staged content, for example because its change failed.
  virtual void Abandon(const StagedContent& content) = 0;

  /// Acknowledges `change`: when this returns, SIGKILL cannot lose it.
  /// `content` is the staged content that the change's extents refer to, if
  /// any. Denials are merged (see Denials).
  virtual Result<Lsn> Append(const Change& change,
                             const StagedContent* content = nullptr) = 0;

  /// As of `lsn`, no extent of the tree refers to this part. Its space is freed
  /// once that is durable in the tables.
  virtual void Release(const Extent& extent, Lsn lsn) = 0;

  /// Reads out.size() bytes at `offset` of the part `ref`. EIO if the checksum
  /// does not match; it is verified only when the whole record is read.
  virtual Status Read(const ContentRef& ref, uint64_t offset,
                      MutableByteSpan out) = 0;

  /// Makes everything acknowledged before the call survive power loss.
  virtual Status Sync() = 0;

  /// Moves everything acknowledged before the call to spool and tables,
  /// durably.
  virtual Status Drain() = 0;
  /// As Drain, but durable only after the next Sync or Drain.
  virtual Status DrainUnsynced() = 0;

  [[nodiscard]] virtual Lsn last_lsn() const = 0;

  /// Calls `visit` with logged changes from `first` on, in order, until it
  /// returns false. Drains what it comes to. Includes internal changes and the
  /// denials that are kept.
  virtual Status ReadLog(Lsn first,
                         const std::function<bool(const LogEntry&)>& visit) = 0;

  /// How many operations policies refused since the journal was opened.
  [[nodiscard]] virtual uint64_t denied() const = 0;
  /// The denials of the transaction. EBADMSG if the intake was damaged while in
  /// use.
  virtual Result<Denials> ReadDenials() = 0;

  // Savepoints. To make one, append a change of Op::kSavepoint with an unused
  // name. The content that exists then is kept for it.

  /// Oldest first.
  [[nodiscard]] virtual std::vector<Savepoint> Savepoints() = 0;
  /// Returns what undoes everything since the savepoint with the LSN
  /// `savepoint`, up to the savepoint `until` (kNoLsn: up to now). Drains
  /// first.
  virtual Result<Rewind> PlanRewind(Lsn savepoint, Lsn until) = 0;
  /// Undoes everything since the savepoint with the LSN `change.offset` in the
  /// tables, drops later savepoints and logs `change`, an Op::kRollback: all of
  /// it, or nothing. No append may run meanwhile. The caller then undoes the
  /// same in its tree and calls SettleRewind. ENOENT if there is no such
  /// savepoint.
  virtual Result<Rewind> Rollback(const Change& change) = 0;
  /// Updates which content is in use from `rewind.content`. Call it right after
  /// Rollback, or after Append of an Op::kRevert with the content that is in
  /// use again; there has to be a savepoint. The next drain frees the rest.
  virtual void SettleRewind(const Rewind& rewind) = 0;
  /// Appends `change`, an Op::kCommit or kDiscard of any size, and drops all
  /// savepoints: all of it, or nothing. Survives power loss after a Drain. No
  /// append may run meanwhile.
  virtual Result<Lsn> Settle(const Change& change) = 0;
  /// An upper bound of the inode numbers in changes that a rollback may undo,
  /// as of the opening of the journal.
  [[nodiscard]] virtual Ino highest_ino() const = 0;

  /// Small facts by name (docs/format.md, "db"). Durable when PutMeta returns;
  /// after an error, either the old or the new value is there.
  virtual Status PutMeta(const std::string& key, std::string_view value) = 0;
  /// ENOENT when it was never put.
  virtual Result<std::string> GetMeta(const std::string& key) = 0;

  /// Gives the blocks reserved for a full disk back to the filesystem, so that
  /// a deletion or a discard can be written. Returns whether there were any.
  /// They are reserved again when there is room.
  virtual bool GiveUpReserve() = 0;

  /// Makes the destructor not drain: the journal is about to be deleted.
  virtual void Forget() = 0;

  /// Bytes of blocks of intake, reserve, spool and tables on disk.
  virtual Result<uint64_t> StoreBytes() = 0;
};

/// Returns the result of `work`. If that is that the disk is full and `again()`
/// is true, gives up the reserve of `journal` and runs `work` once more.
template <class Work, class Again = decltype([] { return true; })>
auto WithReserve(Journal& journal, const Work& work, const Again& again = {}) {
  auto done = work();
  if (!done && IsFull(done.error()) && again() && journal.GiveUpReserve()) {
    done = work();
  }
  return done;
}

}  // namespace txfs

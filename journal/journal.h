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
  uint64_t intake_bytes = 8 << 20;  ///< ring capacity
  uint64_t map_bytes = 16ULL
                       << 30;  ///< LMDB map size to start with; grows when full
  uint64_t segment_bytes =
      256ULL << 20;  ///< a shared segment is closed when it passes this
  uint32_t drain_interval_ms =
      200;                       ///< the longest a record waits in the intake
  bool background_drain = true;  ///< tests switch it off and call Drain()
  Io* io = nullptr;  ///< tests: a disk that fails; null: the system's
};

/// Largest content that travels inside an intake record, bytes.
inline constexpr uint32_t kInlineContentMax = 16 << 10;
/// Largest content of one record, bytes; larger writes are split by the caller.
inline constexpr uint32_t kRecordContentMax = 1 << 20;

/// Content that has a place in the spool but no change that points at it yet.
/// Hand it to Append with the change, or to Abandon.
struct StagedContent {
  ContentRef ref;
  ByteSpan inline_bytes;  ///< borrowed from the caller; empty when already in
                          ///< the spool
};

/// The journal of one transaction: intake ring, spool and LMDB tables
/// (docs/format.md).
///
/// Thread-safe. Append must be called in the order in which changes are applied
/// (the caller holds its tree lock). All errors of a full store are ENOSPC (or
/// EDQUOT); nothing acknowledged is lost.
class Journal {
 public:
  /// Makes `intake`, `spool/`, `db/` in the empty directory `dir` (an open
  /// descriptor).
  static Result<std::unique_ptr<Journal>> Create(
      UniqueFd dir, const JournalOptions& options = {});

  /// Opens what Create made and nobody has opened since.
  static Result<std::unique_ptr<Journal>> OpenUnused(
      UniqueFd dir, const JournalOptions& options = {});

  /// Opens and recovers: replays the intake into the tables, then starts a new
  /// epoch. EBADMSG: damaged, with path and remedy; EPROTONOSUPPORT: a newer
  /// format version.
  static Result<std::unique_ptr<Journal>> Open(
      UniqueFd dir, const JournalOptions& options = {});

  /// Of the journal in directory `dir`: takes the names of segments away that
  /// LinkSegment gave others. They are no content of the journal any more,
  /// and this is durable.
  static Status GiveUpLinked(int dir);

  /// Stops the drain thread. Drains first if it can; what cannot be drained
  /// stays in the intake.
  virtual ~Journal() = default;

  /// Feeds every record of the tables to `state`: inodes, then dentries,
  /// extents, xattrs.
  virtual Status Load(State& state) = 0;

  /// Gives `bytes` (1 … kRecordContentMax) a place. Content over
  /// kInlineContentMax is written to the spool before this returns.
  /// `own_segment` non-zero: the place is `own_position` in that segment, and
  /// the content is written at once whatever its size.
  virtual Result<StagedContent> Stage(ByteSpan bytes, uint32_t own_segment = 0,
                                      uint64_t own_position = 0) = 0;
  /// A new segment for one large file.
  virtual Result<uint32_t> NewSegment() = 0;
  /// Gives the file of such a segment one more name, in `directory`. Then
  /// nothing is punched in it, and who asked may write to what no extent points
  /// at. Drain before. EBUSY while savepoints may need what was there.
  virtual Status LinkSegment(uint32_t segment, int directory,
                             const std::string& name) = 0;
  /// The content is not needed after all (its change failed).
  virtual void Abandon(const StagedContent& content) = 0;

  /// Acknowledges `change`: when this returns, SIGKILL cannot lose it.
  /// `content` is the staged content the change's extents point at, if any.
  /// A denial is kept as Denials says.
  virtual Result<Lsn> Append(const Change& change,
                             const StagedContent* content = nullptr) = 0;

  /// No extent of the tree points at this part any more, as of `lsn`. Frees its
  /// space when the tables know it, too.
  virtual void Release(const Extent& extent, Lsn lsn) = 0;

  /// Reads out.size() bytes at `offset` of the part `ref`. EIO when the
  /// checksum does not match, which is tested when the whole record is read.
  virtual Status Read(const ContentRef& ref, uint64_t offset,
                      MutableByteSpan out) = 0;

  /// Everything acknowledged before the call survives power loss.
  virtual Status Sync() = 0;

  /// Everything acknowledged before the call is in spool and tables, durably.
  virtual Status Drain() = 0;
  /// The same, but durable only with the next Sync or Drain.
  virtual Status DrainUnsynced() = 0;

  [[nodiscard]] virtual Lsn last_lsn() const = 0;

  /// Calls `visit` with logged changes from `first` on, in order, until it
  /// returns false. Drains before. kReap entries are included, and the denials
  /// that are kept.
  virtual Status ReadLog(Lsn first,
                         const std::function<bool(const LogEntry&)>& visit) = 0;

  /// How many operations policies refused since it was opened.
  [[nodiscard]] virtual uint64_t denied() const = 0;
  /// What policies refused, up to now. EBADMSG when the intake was damaged
  /// under us.
  virtual Result<Denials> ReadDenials() = 0;

  // Savepoints. One is made by appending a change of Op::kSavepoint, whose
  // name nobody else has. Content that was there is kept for it.

  /// Oldest first.
  [[nodiscard]] virtual std::vector<Savepoint> Savepoints() = 0;
  /// What it takes to undo everything since savepoint `lsn`. Drains before.
  virtual Result<Rewind> PlanRewind(Lsn savepoint) = 0;
  /// Undoes everything since the savepoint of LSN `change.offset` in the
  /// tables, drops later savepoints and logs `change`, an Op::kRollback: all of
  /// it, or nothing. Nobody may append meanwhile. The caller then undoes the
  /// same in its tree and calls SettleRewind.
  virtual Result<Rewind> Rollback(const Change& change) = 0;
  /// After Rollback, before anything else: which content is alive is as
  /// `rewind.content` says. The next drain frees what is not.
  virtual void SettleRewind(const Rewind& rewind) = 0;
  /// Appends `change`, an Op::kCommit or kDiscard of any size, and forgets all
  /// savepoints: all of it, or nothing. Survives power loss after a Drain.
  /// Nobody may append meanwhile.
  virtual Result<Lsn> Settle(const Change& change) = 0;
  /// No higher inode number is in changes that a rollback may undo, when the
  /// journal was opened.
  [[nodiscard]] virtual Ino highest_ino() const = 0;

  /// Small durable facts by name (docs/format.md, "db"). Survive when Put
  /// returns; after an error there is the old or the new one.
  virtual Status PutMeta(const std::string& key, std::string_view value) = 0;
  /// ENOENT when it was never put.
  virtual Result<std::string> GetMeta(const std::string& key) = 0;

  /// Gives the blocks kept for a full disk back to the filesystem, so that what
  /// ends the trouble (a deletion, a discard) can be written. Returns whether
  /// there were any. They are set aside again when there is room.
  virtual bool GiveUpReserve() = 0;

  /// The journal is about to be thrown away: its destructor does not drain.
  virtual void Forget() = 0;

  /// Bytes the journal takes on disk (blocks of intake, spool and tables).
  virtual Result<uint64_t> StoreBytes() = 0;
};

/// What `work` returns; when that is that the disk is full, and `again()`, what
/// it returns once the reserve of `journal` is given up.
template <class Work, class Again = decltype([] { return true; })>
auto WithReserve(Journal& journal, const Work& work, const Again& again = {}) {
  auto done = work();
  if (!done && IsFull(done.error()) && again() && journal.GiveUpReserve()) {
    done = work();
  }
  return done;
}

}  // namespace txfs

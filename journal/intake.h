#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "journal/change.h"
#include "journal/support/bytes.h"
#include "journal/support/io.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The first record that the tables do not have yet. Kept in the tables.
struct IntakeCursor {
  uint64_t salt = 0;      ///< of the epoch; seed of the checksums
  uint64_t position = 0;  ///< bytes since the epoch began; modulo the capacity:
                          ///< the offset in the ring
  Lsn next_lsn{1};        ///< of the record at `position`

  bool operator==(const IntakeCursor&) const = default;
};

/// A record in the ring. The spans point into the ring.
struct IntakeRecord {
  Lsn lsn = kNoLsn;
  ByteSpan change;        ///< encoded Change
  ContentRef content;     ///< segment 0: none
  ByteSpan inline_bytes;  ///< the content, unless it is in the spool
  uint64_t end = 0;       ///< position after the record
};

/// The ring of records in front of the tables: a preallocated, memory-mapped
/// file (docs/format.md, "intake").
///
/// A record is *waiting* until Drained says that the tables have it. Its place
/// is in use until Durable says that the tables keep it after power loss.
/// Thread-safe, except that calls of Append must not overlap.
class Intake {
 public:
  static constexpr uint64_t kMinCapacity = 64 << 10;

  /// Makes the file and allocates all its blocks. The ring can Grow up to
  /// `most` bytes. ENOSPC, EEXIST.
  static Result<std::unique_ptr<Intake>> Create(int dir, uint64_t capacity,
                                                Io& io, uint64_t most = 0);
  /// EBADMSG: damaged; EPROTONOSUPPORT: a newer version.
  static Result<std::unique_ptr<Intake>> Open(int dir, Io& io,
                                              uint64_t most = 0);
  /// A copy in memory, only for Recover. Does not change the file, which
  /// another process may have open. Errors as Open.
  static Result<std::unique_ptr<Intake>> Copy(int dir);
  ~Intake();
  Intake(const Intake&) = delete;
  Intake& operator=(const Intake&) = delete;

  /// Makes the valid records from `cursor` on the waiting ones. The first one
  /// that `accept` refuses ends them.
  void Recover(const IntakeCursor& cursor,
               const std::function<bool(const IntakeRecord&)>& accept);
  /// Starts an epoch with an empty ring. Requires that no record waits.
  void BeginEpoch(const IntakeCursor& cursor);
  /// Enlarges the ring to `capacity` bytes and goes on at the same position.
  /// Requires that no place in the ring is in use, and that only Sync runs
  /// meanwhile. After an error the ring is as before.
  Status Grow(uint64_t capacity);

  /// Bytes that a record takes in the ring.
  static uint64_t RecordSize(uint64_t change_size, uint64_t inline_size);
  /// Whether a record of `size` bytes fits into an empty ring at any position.
  [[nodiscard]] bool CanHold(uint64_t size) const {
    return size <= capacity_ / 2;
  }
  [[nodiscard]] bool HasRoom(uint64_t size) const;

  struct Appended {
    Lsn lsn = kNoLsn;
    uint64_t waiting_before = 0;  ///< bytes
    uint64_t waiting = 0;         ///< bytes, with this record
  };
  /// Requires room. The record gets the next LSN; `placed` sees it before it is
  /// a waiting record. Fails only if writing to the disk fails.
  Result<Appended> Append(
      ByteSpan change, const ContentRef& content, ByteSpan inline_bytes,
      const std::function<void(const IntakeRecord&)>& placed = {});
  /// Gives the next LSN to a change that is not in the ring. Requires that no
  /// record waits.
  void SkipLsn();

  /// The first waiting records, up to about `max_bytes`. EBADMSG if the file
  /// was damaged while in use.
  Result<std::vector<IntakeRecord>> Waiting(size_t max_records,
                                            uint64_t max_bytes) const;
  /// The cursor for tables that have everything up to `last`.
  [[nodiscard]] IntakeCursor CursorAfter(const IntakeRecord& last) const;
  [[nodiscard]] IntakeCursor DrainedCursor() const;
  /// The tables have everything up to `cursor`.
  void Drained(const IntakeCursor& cursor);
  /// After power loss, the tables still have everything up to `cursor`.
  void Durable(const IntakeCursor& cursor);

  [[nodiscard]] Lsn next_lsn() const;
  [[nodiscard]] uint64_t waiting_bytes() const;
  [[nodiscard]] uint64_t capacity() const { return capacity_; }

  /// Makes all records survive power loss. After a failure they must be written
  /// once more: EIO until that succeeds.
  Status Sync();

 private:
  Intake(UniqueFd fd, std::byte* map, uint64_t map_size, uint64_t capacity,
         Io& io)
      : fd_(std::move(fd)),
        map_(map),
        map_size_(map_size),
        capacity_(capacity),
        io_(io) {}
  static Result<std::unique_ptr<Intake>> Map(UniqueFd fd, uint64_t capacity,
                                             uint64_t most, Io& io);
  Status WriteHeader(uint64_t capacity);
  [[nodiscard]] std::byte* At(uint64_t position) const;
  /// Bytes from `position` to the end of the ring's file.
  [[nodiscard]] uint64_t ToTurn(uint64_t position) const;
  [[nodiscard]] std::optional<IntakeRecord> ReadRecord(uint64_t position,
                                                       Lsn lsn,
                                                       uint64_t salt) const;
  Status Warm(uint64_t place, uint64_t size) REQUIRES(mutex_);
  Status Rewrite() REQUIRES(mutex_);
  void WriteTurnMark() REQUIRES(mutex_);
  IntakeRecord WriteRecord(ByteSpan change, const ContentRef& content,
                           ByteSpan inline_bytes) REQUIRES(mutex_);

  const UniqueFd fd_;
  std::byte* const map_;  ///< of the whole file, and as far as it may grow
  const uint64_t map_size_;
  std::atomic<uint64_t> capacity_;
  Io& io_;

  mutable Mutex mutex_;
  uint64_t salt_ GUARDED_BY(mutex_) = 0;
  uint64_t tail_ GUARDED_BY(mutex_) = 0;  ///< positions before it are free
  IntakeCursor drained_ GUARDED_BY(mutex_);
  uint64_t head_ GUARDED_BY(mutex_) = 0;
  Lsn next_lsn_ GUARDED_BY(mutex_){1};
  /// A sync failed: pages may be neither on the disk nor scheduled for
  /// write-back.
  bool suspect_ GUARDED_BY(mutex_) = false;
  uint64_t warm_ GUARDED_BY(mutex_) = 0;  ///< offsets below it are written
};

}  // namespace txfs

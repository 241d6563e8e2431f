#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "journal/change.h"
#include "journal/denial_table.h"
#include "journal/denials.h"
#include "journal/intake.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/io.h"
#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

struct MDB_env;
struct MDB_txn;

namespace txfs {

/// Handles of the tables (docs/format.md, "db").
struct TableHandles {
  unsigned int inode = 0;
  unsigned int origin = 0;
  unsigned int dentry = 0;
  unsigned int extent = 0;
  unsigned int xattr = 0;
  unsigned int log = 0;
  unsigned int savepoint = 0;
  unsigned int denial = 0;
  unsigned int rule = 0;
  unsigned int meta = 0;
};

/// The tables within one batch. Keeps the first error, with which the batch
/// fails.
class Tables final : public State {
 public:
  Tables(MDB_txn* txn, const TableHandles& handles)
      : txn_(txn), handles_(handles) {}

  void SetInode(Ino ino, const std::optional<InodeRecord>& record) override;
  void SetAttr(Ino ino, const Attr& attr) override;
  void SetDentry(Ino parent, const std::string& name,
                 const DentryValue& value) override;
  void EraseExtent(Ino ino, const Extent& extent) override;
  void PutExtent(Ino ino, const Extent& extent) override;
  void SetXattr(Ino ino, const std::string& name,
                const std::optional<std::string>& value) override;
  void PutLog(Lsn lsn, ByteSpan change);
  void PutSavepoint(const Savepoint& savepoint);
  void EraseSavepoint(Lsn lsn);
  void PutDenial(const LogEntry& denial);
  void EraseDenial(Lsn lsn);
  void PutRule(const DeniedRule& rule);
  void PutCursor(const IntakeCursor& cursor);
  void PutMeta(const std::string& key, std::string_view value);
  void EraseMeta(const std::string& key);
  void PutFormat(uint32_t version);

  /// LMDB's code of the first error, or 0.
  [[nodiscard]] int code() const { return code_; }

 private:
  void Put(unsigned int table, ByteSpan key, ByteSpan value,
           unsigned int flags = 0);
  void Erase(unsigned int table, ByteSpan key);

  MDB_txn* const txn_;
  const TableHandles& handles_;
  Bytes key_, value_;  ///< reused
  int code_ = 0;
};

/// The LMDB environment `db/` of a transaction. Thread-safe.
///
/// A batch is durable after the next batch was written or after Sync: only then
/// has the meta page that refers to it reached the disk.
class Db {
 public:
  /// Makes the environment in `dir`, large enough for the first batches.
  static Result<std::unique_ptr<Db>> Create(int dir, uint64_t map_bytes,
                                            Io& io);
  /// EBADMSG: damaged; EPROTONOSUPPORT: a newer version.
  static Result<std::unique_ptr<Db>> Open(int dir, uint64_t map_bytes, Io& io);
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  /// Makes the tables that the older version did not have. Call it first after
  /// Open.
  Status Upgrade();

  /// Runs `fill` in a batch and commits it: all of it happens, or nothing. Runs
  /// `fill` again if the map had to grow.
  Status Write(const std::function<Status(Tables&)>& fill);
  /// Makes all batches durable. EIO if a batch was lost.
  Status Sync();
  /// Removes readers that died; they keep pages from being reused.
  void CheckReaders();
  /// Gives the memory of pages that were read or written back to the page
  /// cache. What is needed again is mapped again.
  void GiveBackPages();

  /// Feeds inodes, dentries, extents and xattrs to `state`.
  Status Load(State& state);
  /// Feeds attributes of inodes, and extents, only.
  Status LoadContent(State& state);
  /// Reads up to `limit` logged changes, from `first` on.
  Result<std::vector<std::pair<Lsn, Bytes>>> ReadLog(Lsn first, size_t limit);
  /// Visits the logged changes from `first` to before `end`, and those of
  /// `denials` between them. False: `visit` returned false, it has enough.
  Result<bool> VisitLog(Lsn first, Lsn end,
                        const std::vector<LogEntry>& denials,
                        const std::function<bool(const LogEntry&)>& visit);
  /// Visits logged changes from the newest back to the one after `after`.
  /// `visit` returns the LSN at or below which to continue, which is below its
  /// own.
  Status ReadLogBack(Lsn after,
                     const std::function<Result<Lsn>(Lsn, ByteSpan)>& visit);
  /// Oldest first.
  Result<std::vector<Savepoint>> ReadSavepoints();
  Result<DenialTable> ReadDenials();
  Result<IntakeCursor> GetCursor();
  /// ENOENT.
  Result<std::string> GetMeta(const std::string& key);

 private:
  class Reading;

  Db(UniqueFd dir, uint64_t map_bytes, Io& io)
      : dir_(std::move(dir)), io_(io), map_bytes_(map_bytes) {}
  static Result<std::unique_ptr<Db>> OpenEnvironment(int dir,
                                                     uint64_t map_bytes,
                                                     Io& io);
  static Status CheckFile(int dir);
  Status AllocateLockFile();
  Status Connect() REQUIRES(map_mutex_);
  void Disconnect() REQUIRES(map_mutex_);
  Status CheckFileSize() REQUIRES(map_mutex_);
  void KeepSlack() REQUIRES_SHARED(map_mutex_);
  Status OpenTables(bool create);
  Result<uint32_t> ReadVersion();
  Status CheckVersion();
  Status Resize(bool grow);
  Status Reconnect() REQUIRES(write_mutex_);
  /// Whether LMDB refuses all transactions, reads included, after a failed
  /// write.
  [[nodiscard]] bool HasGivenUp();
  /// After a failed write: makes sure that the next sync makes the last batch
  /// durable.
  void Distrust() REQUIRES(write_mutex_) REQUIRES_SHARED(map_mutex_);
  Status RewriteFirstPages() REQUIRES(write_mutex_) REQUIRES_SHARED(map_mutex_);
  /// The errno behind LMDB's `code` for a write. For a partial write, LMDB's
  /// code does not tell the cause.
  [[nodiscard]] int WhyNotWritten(int code) const;
  [[nodiscard]] uint64_t LastBatch() REQUIRES_SHARED(map_mutex_);
  /// Tries once. `code` is LMDB's; 0 if the batch did not fail in LMDB.
  Status TryWrite(const std::function<Status(Tables&)>& fill, int& code)
      REQUIRES(write_mutex_);
  Status LoadInodes(Reading& reading, State& state);
  Status LoadExtents(Reading& reading, State& state);
  [[nodiscard]] std::unexpected<Error> FailWith(int code,
                                                std::string_view what) const;
  [[nodiscard]] std::unexpected<Error> Damaged(std::string_view what) const;

  const UniqueFd dir_;
  Io& io_;
  Mutex write_mutex_;  ///< one batch at a time
  /// Shared: a transaction is open. Exclusive: the environment is replaced or
  /// its map resized, which LMDB allows only without transactions.
  SharedMutex map_mutex_ ACQUIRED_AFTER(write_mutex_);
  uint64_t map_bytes_ GUARDED_BY(map_mutex_);
  MDB_env* env_ GUARDED_BY(map_mutex_) = nullptr;
  TableHandles handles_;
  bool suspect_ GUARDED_BY(write_mutex_) = false;
  uint64_t last_batch_ GUARDED_BY(write_mutex_) = 0;  ///< LMDB's number
  std::atomic<uint64_t> slack_end_ = 0;  ///< the file is longer than that
};

}  // namespace txfs

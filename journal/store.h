#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/file_lock.h"
#include "journal/history.h"
#include "journal/journal.h"
#include "journal/summary.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// An open transaction: its directory, its lock and its journal.
struct OpenTransaction {
  std::string id;
  FileLock lock;
  std::unique_ptr<Journal> journal;
};

/// A transaction that is built but has not begun. The store is locked while
/// this exists.
struct PreparedTransaction {
  FileLock store_lock;
  OpenTransaction next;
};

/// The directory that holds a workspace's transactions (docs/design.md, "State
/// and names").
///
/// All access uses a descriptor, so that the store stays reachable after a
/// mount covers the workspace in which it lies.
class Store {
 public:
  /// Opens the directory `path` below `dir`; `display_path` is its absolute
  /// path. ENOENT; EACCES, with path and remedy, if it is another user's.
  static Result<UniqueFd> OpenDirectory(int dir, const std::string& path,
                                        const std::string& display_path);
  /// Whether there is a store at the absolute `path`.
  [[nodiscard]] static bool IsAt(const std::string& path);
  /// Opens the store in directory `dir`; makes it if `dir` is empty.
  /// `workspace` is the absolute path that a new store records, `display_path`
  /// is for messages. EPROTONOSUPPORT: newer version; EROFS, ENOSPC, ENOTEMPTY,
  /// ENOLCK (a network or FUSE filesystem, where LMDB cannot lock), with path
  /// and remedy.
  static Result<std::unique_ptr<Store>> Open(UniqueFd dir,
                                             std::string display_path,
                                             const std::string& workspace);

  /// Begins a transaction. EEXIST if one with this name is open.
  Result<OpenTransaction> Begin(const std::string& name, Timestamp now,
                                const JournalOptions& options = {});
  /// Opens an open transaction's journal and recovers it. kBusy if another
  /// process holds the transaction; the message names its pid.
  Result<OpenTransaction> Resume(const std::string& id,
                                 const JournalOptions& options = {});
  [[nodiscard]] Result<bool> IsOpen(const std::string& id) const;
  /// Ids of open transactions, oldest first.
  Result<std::vector<std::string>> OpenIds();

  /// Moves the directory of `id`, which the history has, to the trash, if it is
  /// there. `EmptyTrash` frees the space.
  Status Retire(const std::string& id);

  /// Reserves a unique id for an entry of the history that was not an open
  /// transaction. Requires the commit lock, and that the entry for the previous
  /// reservation was written or never will be.
  Result<std::string> ReserveId(Timestamp now);

  /// Drops the open transaction `id` without a record. Requires its lock, and
  /// that its journal is closed.
  Status Drop(const std::string& id);

  /// Ends the discarded open transaction of `ended` on a disk without a free
  /// block: moves its directory to the trash, which takes none. Writes `ended`
  /// to the history if possible. Requires the transaction's lock. After an
  /// error the transaction is open.
  Status EndWithoutRoom(const TransactionSummary& ended);
  /// Empties the trash and tries again to write `ended` to the history. Call it
  /// after EndWithoutRoom, when no process has the transaction's files open.
  void FreeEnded(const TransactionSummary& ended);
  /// Takes the lock of the open transaction `id`. kBusy as in Resume.
  Result<FileLock> LockTransaction(const std::string& id);

  /// Builds the successor of the open transaction `old`, with the same name, so
  /// that after the end of `old` nothing can fail for lack of space.
  Result<PreparedTransaction> Prepare(const TransactionSummary& old,
                                      Timestamp now,
                                      const JournalOptions& options = {});
  /// Begins `prepared` in the place of transaction `old`, which has ended
  /// according to the history, and moves `old` to the trash without closing it.
  Result<OpenTransaction> Succeed(const std::string& old,
                                  PreparedTransaction prepared);
  /// Removes the prepared transaction.
  void Cancel(PreparedTransaction prepared);

  /// Builds an empty transaction for the next Begin or Prepare, if there is
  /// none. They then need not wait for a dozen syncs. Does not lock the store.
  Status MakeBlank(const JournalOptions& options = {});
  /// Removes that transaction. Returns the bytes it took on disk.
  Result<uint64_t> DropBlank();

  /// Records the runs of an open transaction, for List. Not durable: after
  /// power loss there may be none.
  Status WriteRuns(const std::string& id, const std::vector<RunRecord>& runs);
  /// Records, durably, what List returns for an open transaction.
  Status UpdateSummary(const TransactionSummary& summary);

  /// Open transactions, oldest first. Does not need their locks.
  Result<std::vector<TransactionSummary>> ListOpen();
  /// Open and ended transactions, oldest first. Does not need their locks.
  Result<std::vector<TransactionSummary>> List();

  /// Deletes the content of the trash. Can be interrupted, repeated and run
  /// twice at once.
  Status EmptyTrash();

  /// daemon.json of transaction `id`; ENOENT when none was written.
  Result<std::string> ReadDaemonRecord(const std::string& id);
  Status WriteDaemonRecord(const std::string& id, std::string_view json);
  Status RemoveDaemonRecord(const std::string& id);

  /// As Journal::GiveUpLinked, for transaction `id`, if it is there.
  Status GiveUpLinkedSegments(const std::string& id);

  /// Directory of the transaction. ENOENT when it is not open.
  Result<UniqueFd> TransactionDir(const std::string& id);

  /// The history, and the intent of a commit.
  [[nodiscard]] const TransactionHistory& history() const { return history_; }

  [[nodiscard]] int dir() const { return dir_.get(); }
  [[nodiscard]] const std::string& display_path() const {
    return display_path_;
  }

 private:
  Store(UniqueFd dir, std::string display_path)
      : dir_(std::move(dir)),
        display_path_(std::move(display_path)),
        history_(dir_.get()) {}
  Status CheckFilesystem();
  Status CheckFormat();
  Status MakeLayout(const std::string& workspace);
  Result<FileLock> Lock();
  /// Moves transactions that never began or have ended to the trash. Requires
  /// the store lock.
  Status Tidy();
  Status ThrowAway(const std::string& name);
  /// Moves unused transactions that were built to succeed `old` to the trash:
  /// they could neither begin nor be removed. Requires the store lock.
  Status DropFollowers(const TransactionSummary& old);
  Result<OpenTransaction> Build(const TransactionSummary& summary,
                                const JournalOptions& options);
  /// As Build, up to the rename that makes it an open transaction.
  Result<OpenTransaction> BuildNew(const TransactionSummary& summary,
                                   const JournalOptions& options);
  using OpenJournal =
      std::function<Result<std::unique_ptr<Journal>>(UniqueFd dir)>;
  Result<OpenTransaction> BuildIn(const std::string& path,
                                  const TransactionSummary& summary,
                                  const OpenJournal& open_journal);
  Status Publish(const std::string& id);
  Result<FileLock> LockIn(int dir, const std::string& id);
  Result<bool> HasEnded(const std::string& id);
  /// An unused id. Requires the store lock until the id is in use.
  Result<std::string> NewId(Timestamp now);
  /// `error` with the store's path and a remedy.
  [[nodiscard]] Error Explain(Error error) const;

  UniqueFd dir_;
  std::string display_path_;
  TransactionHistory history_;
};

}  // namespace txfs

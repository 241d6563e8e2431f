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

/// A transaction that is built but has not begun; the store is locked for as
/// long as it is held.
struct PreparedTransaction {
  FileLock store_lock;
  OpenTransaction next;
};

/// The directory that holds a workspace's transactions (docs/design.md, "State
/// and names").
///
/// All access goes through a descriptor, so that the store stays reachable when
/// the workspace it lies in is mounted over.
class Store {
 public:
  /// Opens the directory `path` below `dir`, of which `display_path` is the
  /// absolute path. ENOENT when there is none; EACCES, when it is somebody
  /// else's, with path and remedy.
  static Result<UniqueFd> OpenDirectory(int dir, const std::string& path,
                                        const std::string& display_path);
  /// Whether a store was made at the absolute `path`.
  [[nodiscard]] static bool IsAt(const std::string& path);
  /// Opens the store in directory `dir`, making it if it is empty. `workspace`
  /// is the absolute path that a new one notes. EPROTONOSUPPORT: newer
  /// version; EROFS, ENOSPC, ENOLCK (a network filesystem, where LMDB cannot
  /// lock) with path and remedy. `display_path` is for messages.
  static Result<std::unique_ptr<Store>> Open(UniqueFd dir,
                                             std::string display_path,
                                             const std::string& workspace);

  /// Begins a transaction. Requires that none of that name is open.
  Result<OpenTransaction> Begin(const std::string& name, Timestamp now,
                                const JournalOptions& options = {});
  /// Opens an open transaction's journal and recovers it. kBusy when a daemon
  /// holds it; the message names its pid.
  Result<OpenTransaction> Resume(const std::string& id,
                                 const JournalOptions& options = {});
  [[nodiscard]] Result<bool> IsOpen(const std::string& id) const;
  /// Ids of open transactions, oldest first.
  Result<std::vector<std::string>> OpenIds();

  /// Throws the directory of `id` away, if it is there: the history has it.
  /// `EmptyTrash` frees the space.
  Status Retire(const std::string& id);

  /// An id, for an entry of the history that was no open transaction, that
  /// nothing else ever gets. Requires the commit lock, and that the entry of
  /// the reservation before was written, or never will be.
  Result<std::string> ReserveId(Timestamp now);

  /// Throws away the open transaction `id` without a record of it. Requires its
  /// lock, and that its journal is not used any more.
  Status Drop(const std::string& id);

  /// Ends the open transaction of `ended`, which is discarded, on a disk that
  /// has no block left: its directory goes to the trash, which takes none. The
  /// history gets `ended` if it can. Requires the transaction's lock. After an
  /// error it is open.
  Status EndWithoutRoom(const TransactionSummary& ended);
  /// Deletes what that threw away, when nobody has it open, and then tries
  /// again to write `ended` to the history.
  void FreeEnded(const TransactionSummary& ended);
  /// The lock of the open transaction `id`. kBusy as of Resume.
  Result<FileLock> LockTransaction(const std::string& id);

  /// Builds the transaction that is to follow `old`, which is open, under the
  /// same name, so that nothing can fail for want of space when that one has
  /// ended.
  Result<PreparedTransaction> Prepare(const TransactionSummary& old,
                                      Timestamp now,
                                      const JournalOptions& options = {});
  /// Begins `prepared` in the place of transaction `old`, which the history
  /// says has ended, and throws that away without closing it.
  Result<OpenTransaction> Succeed(const std::string& old,
                                  PreparedTransaction prepared);
  /// Throws away what was prepared.
  void Cancel(PreparedTransaction prepared);

  /// Builds, if there is none, an empty transaction for the next Begin or
  /// Prepare, which then need not wait for a dozen syncs. Locks nobody out.
  Status MakeBlank(const JournalOptions& options = {});
  /// Removes that. Returns the bytes it took on disk.
  Result<uint64_t> DropBlank();

  /// Records what List is to show of an open transaction, durably.
  Status UpdateSummary(const TransactionSummary& summary);

  /// Open transactions, oldest first. Does not need their locks.
  Result<std::vector<TransactionSummary>> ListOpen();
  /// Open and ended transactions, oldest first. Does not need their locks.
  Result<std::vector<TransactionSummary>> List();

  /// Deletes what was thrown away. Safe to interrupt, to repeat and to run
  /// twice at once.
  Status EmptyTrash();

  /// daemon.json of transaction `id`; ENOENT when none was written.
  Result<std::string> ReadDaemonRecord(const std::string& id);
  Status WriteDaemonRecord(const std::string& id, std::string_view json);
  Status RemoveDaemonRecord(const std::string& id);

  /// As Journal::GiveUpLinked, of transaction `id`, if it is there.
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
  /// Moves what was never begun, or has ended, to the trash. Requires the lock.
  Status Tidy();
  Status ThrowAway(const std::string& name);
  /// The same with those that were to follow `old` and could neither begin nor
  /// be taken back. Requires the lock.
  Status DropFollowers(const TransactionSummary& old);
  Result<OpenTransaction> Build(const TransactionSummary& summary,
                                const JournalOptions& options);
  /// Build up to the rename that makes it one of the open transactions.
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
  /// An id that is not in use. Requires the lock, until it is.
  Result<std::string> NewId(Timestamp now);
  /// `error` for people: which store, and what to do.
  [[nodiscard]] Error Explain(Error error) const;

  UniqueFd dir_;
  std::string display_path_;
  TransactionHistory history_;
};

}  // namespace txfs

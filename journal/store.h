#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/base/bytes.h"
#include "journal/base/result.h"
#include "journal/base/types.h"
#include "journal/base/unique_fd.h"
#include "journal/journal.h"

namespace txfs {

enum class TransactionState { kActive, kCommitting, kCommitted, kDiscarded };

/// "active", "committing", "committed", "discarded".
[[nodiscard]] std::string_view StateName(TransactionState state);
[[nodiscard]] std::optional<TransactionState> StateFromName(
    std::string_view name);

/// What is known about a transaction without opening its journal.
struct TransactionSummary {
  std::string id;    ///< 12 lower-case hex digits, sorts by time of creation
  std::string name;  ///< chosen by the user; may be empty
  TransactionState state = TransactionState::kActive;
  Timestamp created;
  Timestamp ended;       ///< zero while open
  std::string message;   ///< of the commit
  uint64_t changes = 0;  ///< net changes at the end; 0 while open
};

/// Encodes per docs/format.md, "Transaction summary".
[[nodiscard]] Bytes EncodeSummary(const TransactionSummary& summary);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<TransactionSummary> DecodeSummary(ByteSpan in);

/// Holds an flock until destroyed.
class FileLock {
 public:
  /// Waits up to `timeout_ms` (0: not at all). EWOULDBLOCK, kind kBusy, when
  /// somebody has it.
  static Result<FileLock> Take(int dir, const std::string& path,
                               int timeout_ms);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

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
  /// Opens the store in directory `dir`, making it if it is empty. `workspace`
  /// is the absolute path recorded in a new one. EPROTONOSUPPORT: newer
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
  /// Ids of open transactions, oldest first.
  Result<std::vector<std::string>> OpenIds();

  /// Ends `transaction`: writes its history record, moves its directory to the
  /// trash (one rename) and releases it. `EmptyTrash` frees the space.
  Status End(OpenTransaction transaction, const TransactionSummary& summary);

  /// Builds the transaction that is to follow an open one of the same name, so
  /// that nothing can fail for want of space when that one has ended.
  Result<PreparedTransaction> Prepare(const std::string& name, Timestamp now,
                                      const JournalOptions& options = {});
  /// Ends `old` as End does, but without closing it, and begins `prepared` in
  /// its place. A crash leaves `old` open, or none, or the next.
  Result<OpenTransaction> Succeed(const TransactionSummary& old,
                                  PreparedTransaction prepared);
  /// Throws away what was prepared.
  void Cancel(PreparedTransaction prepared);

  /// Records what List is to show of an open transaction, durably.
  Status UpdateSummary(const TransactionSummary& summary);

  /// Open and ended transactions, oldest first. Does not need their locks.
  Result<std::vector<TransactionSummary>> List();

  /// Deletes what was thrown away. Safe to interrupt, to repeat and to run
  /// twice at once.
  Status EmptyTrash();

  /// daemon.json of transaction `id`; ENOENT when none was written.
  Result<std::string> ReadDaemonRecord(const std::string& id);
  Status WriteDaemonRecord(const std::string& id, std::string_view json);
  Status RemoveDaemonRecord(const std::string& id);

  /// Directory of the transaction, for what commit stages there.
  Result<UniqueFd> TransactionDir(const std::string& id);

  [[nodiscard]] int dir() const { return dir_.get(); }
  [[nodiscard]] const std::string& display_path() const {
    return display_path_;
  }

 private:
  Store(UniqueFd dir, std::string display_path)
      : dir_(std::move(dir)), display_path_(std::move(display_path)) {}
  Status CheckFilesystem();
  Status CheckFormat();
  Status CheckWorkspace(const std::string& workspace);
  Status MakeLayout(const std::string& workspace);
  Result<FileLock> Lock();
  /// Moves what was never begun, or has ended, to the trash. Requires the lock.
  Status Tidy();
  Status ThrowAway(const std::string& name);
  Result<std::string> NewId(Timestamp now);
  Result<OpenTransaction> Build(const TransactionSummary& summary,
                                const JournalOptions& options);
  /// Build up to the rename that makes it one of the open transactions.
  Result<OpenTransaction> BuildNew(const TransactionSummary& summary,
                                   const JournalOptions& options);
  Status Publish(const std::string& id);
  Result<bool> HasEnded(const std::string& id);
  /// `error` for people: which store, and what to do.
  [[nodiscard]] Error Explain(Error error) const;

  UniqueFd dir_;
  std::string display_path_;
};

}  // namespace txfs

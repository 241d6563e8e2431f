#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/commit/commit_image.h"
#include "fs/commit/commit_run.h"
#include "fs/commit/conflict.h"
#include "fs/vault/commit_step.h"
#include "fs/vault/vaults.h"
#include "journal/store.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// A commit, partial commit or undo as its intent and its history have it.
struct CommitRecord {
  TransactionSummary summary;  ///< as the history will have it
  std::string vault;           ///< id of the vault the steps speak of
  CommitSteps steps;
  /// Of a partial commit: the change, encoded, that takes the part out of the
  /// transaction `summary.of` afterwards, and its LSN at the least.
  Bytes settlement;
  Lsn settles_at = kNoLsn;
};

/// Encodes per docs/format.md, "Commit plan".
[[nodiscard]] Bytes EncodeRecord(const CommitRecord& record);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<CommitRecord> DecodeRecord(ByteSpan in);

/// How long a commit, or what else changes the base, waits for another one.
inline constexpr int kCommitLockMs = 30'000;

/// What an undo did, or why it did nothing.
struct UndoReport {
  std::string id;      ///< of the undo, itself an entry of the history
  std::string undone;  ///< the commit it took back
  uint64_t changes = 0;
  std::vector<Conflict> conflicts;  ///< non-empty: nothing was done
};

/// What freeing history gave back.
struct GcReport {
  uint64_t commits = 0;  ///< that can no longer be undone
  uint64_t bytes = 0;    ///< on disk
  /// Records of transactions of which nothing is in the base: they were
  /// discarded, or undone for good.
  uint64_t forgotten = 0;
};

/// The commit that passed its point of no return and is not finished; null when
/// there is none.
Result<std::unique_ptr<CommitRecord>> ReadIntent(const Store& store);

/// Whether a commit is gone from the base by `ended`. An undo of an undo does
/// again what was done. `list`: all of the history.
[[nodiscard]] bool TakesBack(const TransactionSummary& ended,
                             const std::vector<TransactionSummary>& list);

/// How much history is kept.
struct Retention {
  uint64_t commits = 50;
  uint64_t bytes = uint64_t{10} << 30;
};

/// Who takes up what stopped behind its point of no return.
enum class GoesOn {
  kByCommit,  ///< whom it belongs to, with `txfs commit`
  kByAnyone,  ///< the next command, whatever it is
};

/// Runs work that changes the base, in such a way that nobody looks meanwhile.
using BaseWork = std::function<Status(const std::function<Status()>& work)>;

/// Brings commits to the base and takes them back (docs/recovery.md). Needs
/// store and base, and no transaction. The caller holds the commit lock but
/// where it says otherwise.
class Committer {
 public:
  Committer(Store& store, const BaseDirectory& base,
            CommitProgress progress = {})
      : store_(store),
        base_(base),
        vaults_(base, store.dir()),
        progress_(std::move(progress)) {}

  [[nodiscard]] const Vaults& vaults() const { return vaults_; }

  void OnProgress(CommitProgress progress) { progress_ = std::move(progress); }

  /// The commit lock. kBusy, for people, when somebody else has it.
  Result<FileLock> Lock(int timeout_ms) const;

  /// As ReadIntent; it is durable.
  Result<std::unique_ptr<CommitRecord>> Unfinished() const;

  /// Whether a plan may be carried out by us. EACCES with path and remedy.
  Status CheckPermitted(const CommitRecord& record) const;
  /// The point of no return. After an error it is passed if there is an intent.
  Status PassPointOfNoReturn(const CommitRecord& record);
  /// After it: the steps, the image and the entry in the history. Can be
  /// repeated.
  Status CarryOut(const CommitRecord& record);
  /// After CarryOut, of a partial commit whose process died: takes what was
  /// committed out of the transaction. Can be repeated. kBusy when somebody
  /// has the transaction.
  Status Settle(const CommitRecord& record);
  /// The last step of the protocol.
  Status Finish(const CommitRecord& record);
  /// What is to be said of `error` after the point of no return.
  [[nodiscard]] std::unexpected<Error> HalfWay(
      const TransactionSummary& summary, Error error, GoesOn by) const;
  /// Goes on with the commit of a process that died. Returns its id when there
  /// was one, and the base changed; else "".
  Result<std::string> FinishUnfinished();

  /// Takes a commit back, or says in the report why not. `wanted`: a name (the
  /// newest that can be undone under it) or the beginning of an id; empty: the
  /// newest that can be. Requires that nothing is unfinished.
  Result<UndoReport> Undo(const std::string& wanted, Timestamp now,
                          const BaseWork& change_base);

  /// The record of that undo, checked against the base: with conflicts in
  /// `report`, nothing is to be done.
  Result<CommitRecord> PrepareUndo(const std::string& wanted, Timestamp now,
                                   UndoReport& report);

  /// What the history has of a commit that can be undone.
  Result<CommitRecord> ReadRecord(const std::string& id) const;
  Result<CommitImage> ReadImage(const std::string& id) const;

  /// Reads what commits took away, and keeps its checksums beside it, newest
  /// first, until `stop` says that it is enough for now. Takes the lock itself,
  /// when it writes; what cannot be done is left for another time.
  Status SumVaults(const std::function<bool()>& stop);

  /// Frees what `retention` does not keep, and what nothing refers to.
  Result<GcReport> CollectGarbage(const Retention& retention);
  /// The same, the trash, and records of what left nothing in the base; takes
  /// the lock itself.
  Result<GcReport> FreeSpace(const Retention& retention, int timeout_ms);

 private:
  Status CheckVault(const CommitRecord& record) const;
  Status SumVault(const TransactionSummary& commit,
                  const std::function<bool()>& stop);
  /// Whether a commit or undo since `commit` left object `ino` with this ctime.
  Result<bool> LeftSince(const TransactionSummary& commit, uint64_t ino,
                         Timestamp ctime) const;
  /// Whether that commit, or undo, wrote to the file in place.
  Result<bool> Patches(const std::string& id, uint64_t ino) const;
  Result<std::string> ChooseUndoable(const std::string& wanted) const;
  Status Forget(GcReport& report);
  Result<uint64_t> RemoveUnreferenced(const std::vector<std::string>& kept);
  Status FinishDead(const CommitRecord& record);
  /// Whether the log of the transaction has the settlement.
  static Result<bool> IsSettled(Journal& journal, const CommitRecord& record);
  Result<bool> IsOver(const CommitRecord& record) const;

  Store& store_;
  const BaseDirectory& base_;
  Vaults vaults_;
  CommitProgress progress_;
};

/// The name of the user who runs this, or the number.
[[nodiscard]] std::string CurrentUser();

}  // namespace txfs

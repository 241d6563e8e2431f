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

/// A commit, partial commit or undo, as stored in the intent and in the
/// history.
struct CommitRecord {
  TransactionSummary summary;  ///< as it will be in the history
  std::string vault;           ///< id of the vault that the steps refer to
  CommitSteps steps;
  /// For a partial commit: the encoded change that will remove the part from
  /// the transaction `summary.of`, and a lower bound of its LSN.
  Bytes settlement;
  Lsn settles_at = kNoLsn;
};

/// Encodes per docs/format.md, "Commit plan".
[[nodiscard]] Bytes EncodeRecord(const CommitRecord& record);
/// EBADMSG; EPROTONOSUPPORT for a newer version.
Result<CommitRecord> DecodeRecord(ByteSpan in);

/// How long a process that will change the base waits for a commit,
/// milliseconds.
inline constexpr int kCommitLockMs = 30'000;

/// The result of an undo.
struct UndoReport {
  std::string id;      ///< of the undo, which is itself an entry of the history
  std::string undone;  ///< the undone commit
  uint64_t changes = 0;
  std::vector<Conflict> conflicts;  ///< non-empty: nothing was done
};

/// The result of freeing history.
struct GcReport {
  uint64_t commits = 0;  ///< commits that can no longer be undone
  uint64_t bytes = 0;    ///< on disk
  /// Removed records of transactions that left nothing in the base: they were
  /// discarded, or undone irrevocably.
  uint64_t forgotten = 0;
};

/// The commit that is past its point of no return and not finished; null if
/// there is none.
Result<std::unique_ptr<CommitRecord>> ReadIntent(const Store& store);

/// Whether `ended` is an undo that leaves its commit undone; an undo of an undo
/// does not. `list`: the whole history.
[[nodiscard]] bool TakesBack(const TransactionSummary& ended,
                             const std::vector<TransactionSummary>& list);

/// How much history is kept.
struct Retention {
  uint64_t commits = 50;
  uint64_t bytes = uint64_t{10} << 30;
};

/// Which command continues a commit that failed after its point of no return.
enum class GoesOn {
  kByCommit,  ///< `txfs commit` on its transaction
  kByAnyone,  ///< the next command of any kind
};

/// Runs work that changes the base while no operation can see it.
using BaseWork = std::function<Status(const std::function<Status()>& work)>;

/// Applies commits to the base and undoes them (docs/recovery.md). Needs the
/// store and the base, but no transaction. Unless a comment says otherwise, the
/// caller holds the commit lock.
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

  /// Takes the commit lock. kBusy, with a message for users, if another process
  /// holds it.
  Result<FileLock> Lock(int timeout_ms) const;

  /// As ReadIntent, and makes the intent durable.
  Result<std::unique_ptr<CommitRecord>> Unfinished() const;

  /// Checks that this user may carry out a plan. EACCES with path and remedy.
  Status CheckPermitted(const CommitRecord& record) const;
  /// Writes the intent. After an error, the point of no return is passed if
  /// there is an intent.
  Status PassPointOfNoReturn(const CommitRecord& record);
  /// After the point of no return: carries out the steps, and writes image,
  /// manifest and record of the history. Can be repeated.
  Status CarryOut(const CommitRecord& record);
  /// After CarryOut, for a partial commit whose process died: removes the
  /// committed part from the transaction. Can be repeated. kBusy if another
  /// process holds the transaction.
  Status Settle(const CommitRecord& record);
  /// Carries out the last step of the protocol.
  Status Finish(const CommitRecord& record);
  /// `error` as reported to users after the point of no return.
  [[nodiscard]] std::unexpected<Error> HalfWay(
      const TransactionSummary& summary, Error error, GoesOn by) const;
  /// Finishes the commit of a process that died. Returns its id, in which case
  /// the base has changed; "" if there was none.
  Result<std::string> FinishUnfinished();

  /// Undoes a commit, unless there are conflicts, which are in the report.
  /// `wanted`: a name (its newest commit that can be undone), the beginning of
  /// an id, or empty (the newest commit that can be undone). Requires that no
  /// commit is unfinished.
  Result<UndoReport> Undo(const std::string& wanted, Timestamp now,
                          const BaseWork& change_base);

  /// Prepares an undo and compares the commit's image with the base. If there
  /// are conflicts in `report`, do not carry it out.
  Result<CommitRecord> PrepareUndo(const std::string& wanted, Timestamp now,
                                   UndoReport& report);

  /// The history's record of a commit that can be undone.
  Result<CommitRecord> ReadRecord(const std::string& id) const;
  Result<CommitImage> ReadImage(const std::string& id) const;

  /// Computes checksums of what commits put into vaults, newest first, and
  /// stores them there, until `stop` returns true. Takes the commit lock when
  /// it writes. Skips vaults that cannot be summed now.
  Status SumVaults(const std::function<bool()>& stop);

  /// Frees commits that `retention` does not keep, and what nothing refers to.
  Result<GcReport> CollectGarbage(const Retention& retention);
  /// As CollectGarbage; also empties the trash and removes records of
  /// transactions that left nothing in the base. Takes the commit lock.
  Result<GcReport> FreeSpace(const Retention& retention, int timeout_ms);

 private:
  Status CheckVault(const CommitRecord& record) const;
  Status SumVault(const TransactionSummary& commit,
                  const std::function<bool()>& stop);
  /// Whether a commit or undo since `commit` left object `ino` with this ctime,
  /// and none that still stands has patched it.
  Result<bool> LeftSince(const TransactionSummary& commit, uint64_t ino,
                         Timestamp ctime) const;
  /// Whether that commit or undo patched the file.
  Result<bool> Patches(const std::string& id, uint64_t ino) const;
  Result<std::string> ChooseUndoable(const std::string& wanted) const;
  Status Forget(GcReport& report);
  Result<uint64_t> RemoveUnreferenced(const std::vector<std::string>& kept);
  /// Removes what the commit with these steps kept in the base.
  Status RemoveBeside(const CommitSteps& steps) const;
  Status FinishDead(const CommitRecord& record);
  /// Whether the transaction's log has the settling change.
  static Result<bool> IsSettled(Journal& journal, const CommitRecord& record);
  Result<bool> IsOver(const CommitRecord& record) const;

  Store& store_;
  const BaseDirectory& base_;
  Vaults vaults_;
  CommitProgress progress_;
};

/// The name of the effective user; its number if it has none.
[[nodiscard]] std::string CurrentUser();

}  // namespace txfs

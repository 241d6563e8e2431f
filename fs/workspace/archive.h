#pragma once

#include <memory>
#include <string>

#include "fs/commit/committer.h"
#include "fs/diff/commit_view.h"
#include "journal/store.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The ended transactions of a workspace and the operations on them. Either a
/// Workspace, or store and base without an open transaction. Thread-safe.
class Archive {
 public:
  /// Opens `store` and the directory `base` of the workspace at the absolute
  /// `path`, without a transaction.
  static std::unique_ptr<Archive> Open(std::string path, UniqueFd base,
                                       std::unique_ptr<Store> store);
  virtual ~Archive() = default;

  virtual Store& store() = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// The default retention.
  [[nodiscard]] virtual const Retention& retention() const = 0;

  /// Finishes the commit of a process that died during it, if there is one.
  /// kBusy if another process is doing that. Returns the id of a commit
  /// finished by this object since the last call, in which case the base has
  /// changed; else "".
  virtual Result<std::string> Recover() = 0;

  /// Undoes a commit in the base; `wanted` as in Committer::Undo. Open
  /// transactions stay open. Conflicts are in the report.
  virtual Result<UndoReport> Undo(const std::string& wanted) = 0;

  /// Shows the transaction that `wanted` means (FindTransaction).
  virtual Result<CommitView> Show(const std::string& wanted) = 0;

  /// Reads from a file of the base, as ReadFully.
  virtual Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                                  MutableByteSpan out) = 0;
  /// Reads from a file of a vault; `path` as from Vaults::PathOf.
  virtual Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                                   MutableByteSpan out) = 0;

  /// Reads from one side of a change of an ended commit (ViewCommit), its delta
  /// applied; returns the bytes read, fewer at the end. Symbolic links have no
  /// content here.
  Result<size_t> ReadEnded(const ChangeSide& side, uint64_t offset,
                           MutableByteSpan out);

  /// Frees commits that `retention` does not keep.
  virtual Result<GcReport> CollectGarbage(const Retention& retention) = 0;
};

}  // namespace txfs

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

/// The ended transactions of a workspace, and what can be done about them: a
/// Workspace, or store and base where none is opened. Thread-safe.
class Archive {
 public:
  /// Of `store` and the directory `base` of the workspace at the absolute
  /// `path`, without a transaction.
  static std::unique_ptr<Archive> Open(std::string path, UniqueFd base,
                                       std::unique_ptr<Store> store);
  virtual ~Archive() = default;

  virtual Store& store() = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// How much history is kept unless somebody says otherwise.
  [[nodiscard]] virtual const Retention& retention() const = 0;

  /// Finishes the commit of a process that died in it, if there is one. kBusy
  /// when somebody else is at it. Returns the id of such a commit that was
  /// finished here since the last call, when the base has changed; else "".
  virtual Result<std::string> Recover() = 0;

  /// Takes a commit back, in the base; `wanted` as Committer::Undo has it. Open
  /// transactions stay open. Conflicts are in the report.
  virtual Result<UndoReport> Undo(const std::string& wanted) = 0;

  /// What is known of the transaction that `wanted` means (FindTransaction).
  virtual Result<CommitView> Show(const std::string& wanted) = 0;

  /// Reads from a file of the base, as ReadFully.
  virtual Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                                  MutableByteSpan out) = 0;
  /// Reads from a file of a vault; `path` begins with the vault's id.
  virtual Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                                   MutableByteSpan out) = 0;

  /// Reads from one side of a change of an ended commit (ViewCommit), its delta
  /// applied; returns the bytes read, fewer at the end. Symbolic links have no
  /// content here.
  Result<size_t> ReadEnded(const ChangeSide& side, uint64_t offset,
                           MutableByteSpan out);

  /// Frees what `retention` does not keep.
  virtual Result<GcReport> CollectGarbage(const Retention& retention) = 0;
};

}  // namespace txfs

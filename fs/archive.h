#pragma once

#include <memory>
#include <optional>
#include <string>

#include "fs/commit_view.h"
#include "fs/committer.h"
#include "journal/base/bytes.h"
#include "journal/base/result.h"
#include "journal/store.h"

namespace txfs {

/// The ended transactions of a workspace, and what can be done about them: a
/// Workspace, or store and base where none is opened. Thread-safe.
class Archive {
 public:
  /// Opens store and base of the workspace at the absolute `path`, and no
  /// transaction. `store`: its directory, if that is not PATH/.txfs. A commit
  /// that a dead process left is finished first.
  static Result<std::unique_ptr<Archive>> Open(
      const std::string& path, const std::optional<std::string>& store);
  virtual ~Archive() = default;

  virtual Store& store() = 0;
  [[nodiscard]] virtual const std::string& path() const = 0;
  /// How much history is kept unless somebody says otherwise.
  [[nodiscard]] virtual const Retention& retention() const = 0;

  /// Finishes the commit of a process that died in it, if there is one. kBusy
  /// when somebody else is at it.
  virtual Status Recover() = 0;

  /// Takes a commit back, in the base; `id`: the beginning of one, or empty:
  /// the newest that can be. Open transactions stay open. Conflicts are in the
  /// report.
  virtual Result<UndoReport> Undo(const std::string& id) = 0;

  /// What is known of a transaction; `id`: the beginning of one.
  virtual Result<CommitView> Show(const std::string& id) = 0;

  /// Reads from a file of the base, as ReadFully.
  virtual Result<size_t> ReadBase(const std::string& base_path, uint64_t offset,
                                  MutableByteSpan out) = 0;
  /// Reads from a file of a vault; `path` begins with the vault's id.
  virtual Result<size_t> ReadVault(const std::string& path, uint64_t offset,
                                   MutableByteSpan out) = 0;

  /// Frees what `retention` does not keep.
  virtual Result<GcReport> CollectGarbage(const Retention& retention) = 0;
};

}  // namespace txfs

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "journal/support/directory_id.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// The record of a workspace in the user's state directory. It alone decides
/// whether a store is the user's own; nothing in the workspace does
/// (docs/security.md, "Stores").
struct WorkspaceRecord {
  DirectoryId id;
  std::string path;   ///< path of the workspace at its last use
  std::string store;  ///< absolute path of the store's directory
  /// Identity of a store given with --store; none: the store is beside the
  /// record.
  std::optional<DirectoryId> store_id;
};

/// Finds the record of the workspace that is open at `fd` and was reached by
/// `path`. None if there is none, or if the workspace is a clone: another
/// directory with the same identity is at the recorded path. Corrects the path
/// in record and store if the workspace was moved.
Result<std::optional<WorkspaceRecord>> FindRecord(int fd,
                                                  const std::string& path);

/// Makes the record of a workspace that has none. `store`: absolute path from
/// --store; made if it is missing. Refuses a store that is another user's,
/// another workspace's, or foreign.
Result<WorkspaceRecord> MakeRecord(int fd, const std::string& path,
                                   const std::optional<std::string>& store);

/// Opens the store's directory and checks that it is the recorded one and
/// private. ENOENT if it is missing.
Result<UniqueFd> OpenRecordedStore(const WorkspaceRecord& record);

/// Calls `visit` with every readable record.
Status ForEachRecord(const std::function<void(const WorkspaceRecord&)>& visit);

/// The records of workspaces that are no longer at their path: nothing or
/// another directory is there. Some may have been moved, or are on a filesystem
/// that is not mounted.
Result<std::vector<WorkspaceRecord>> GoneWorkspaces();

/// Removes the record, and the store unless it was given with --store. Returns
/// the bytes freed.
Result<uint64_t> RemoveRecord(const WorkspaceRecord& record);

/// Whether the workspace at `fd` has a store in `.txfs`: of an earlier version
/// of txfs, or one that came with the workspace.
[[nodiscard]] bool HasForeignStore(int fd);

}  // namespace txfs::cli

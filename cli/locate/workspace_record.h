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

/// What the user's state directory has about a workspace: by it, and by nothing
/// that lies in the workspace, a store is known to be the user's own
/// (docs/security.md, "Stores").
struct WorkspaceRecord {
  DirectoryId id;
  std::string path;   ///< where the workspace was when it was last used
  std::string store;  ///< absolute path of the store's directory
  /// Of a store that was given with --store; none: it is beside the record.
  std::optional<DirectoryId> store_id;
};

/// The record of the workspace that is open at `fd` and was reached by `path`.
/// None when there is none, and when the recorded path leads to another
/// directory of the same identity: then this one is a clone. A path that leads
/// nowhere any more is put right, here and in the store.
Result<std::optional<WorkspaceRecord>> FindRecord(int fd,
                                                  const std::string& path);

/// Makes the record of a workspace that has none. `store`: absolute, given with
/// --store; made, if it is missing. Refuses a store that is somebody else's, or
/// that of another workspace, or foreign.
Result<WorkspaceRecord> MakeRecord(int fd, const std::string& path,
                                   const std::optional<std::string>& store);

/// Opens the store's directory and checks that it is the one that was recorded,
/// and private. ENOENT when it is missing.
Result<UniqueFd> OpenRecordedStore(const WorkspaceRecord& record);

/// Shows `visit` every record that can be read.
Status ForEachRecord(const std::function<void(const WorkspaceRecord&)>& visit);

/// The records of workspaces that are at their path no more: nothing is there,
/// or another directory. Some may have been moved, or be on a filesystem that
/// is not mounted.
Result<std::vector<WorkspaceRecord>> GoneWorkspaces();

/// Removes the record, and the store unless it was given with --store. Returns
/// the bytes that it freed.
Result<uint64_t> RemoveRecord(const WorkspaceRecord& record);

/// Whether the workspace at `fd` has a directory `.txfs` with a store in it: of
/// an earlier version of txfs, or one that came with the workspace.
[[nodiscard]] bool HasForeignStore(int fd);

}  // namespace txfs::cli

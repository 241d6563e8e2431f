#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "fs/posix/filesystem.h"
#include "fs/tree/inode.h"
#include "journal/change.h"

namespace txfs {

/// The record of a new object, with one name; `mode`: permission bits.
[[nodiscard]] InodeRecord NewRecord(FileType type, uint32_t mode);

/// Sets the permissions and access control lists of a new object: those of the
/// default list of its directory, or those that the caller's umask leaves.
/// Returns the lists by name.
std::map<std::string, std::string> InheritAcl(
    const std::optional<std::string>& list, const Caller& caller, Attr& attr);

/// Sets the IDs of the caller, or the group of a directory with set-group-ID.
void SetOwner(InodeRecord& record, const Inode& directory,
              const Caller& caller);

}  // namespace txfs

#pragma once

#include <optional>

#include "fs/posix/filesystem.h"
#include "journal/change.h"

namespace txfs {

/// FilesystemOptions::rights_of.
using RightsOf = std::function<FileRights(const Caller&)>;

/// Whether a change of the mode by this process clears set-group-ID: it is
/// neither in the group nor has CAP_FSETID.
[[nodiscard]] bool LosesSetGroupId(const RightsOf& rights_of,
                                   const Caller& caller, const Attr& attr);

/// Takes set-user-ID and set-group-ID from a file whose content `caller`
/// changes, unless it has CAP_FSETID. `kills`: the kernel's decision about
/// that; none: it made none.
void KillPrivileges(const RightsOf& rights_of, const Caller& caller,
                    std::optional<bool> kills, Attr& attr);

}  // namespace txfs

#include "fs/posix/privileges.h"

#include <sys/stat.h>

#include <algorithm>

#include "fs/posix/checks.h"

namespace txfs {

bool LosesSetGroupId(const RightsOf& rights_of, const Caller& caller,
                     const Attr& attr) {
  if ((attr.mode & S_ISGID) == 0 || caller.gid == attr.gid) return false;
  const FileRights rights = rights_of(caller);
  return !rights.fsetid &&
         std::ranges::find(rights.groups, attr.gid) == rights.groups.end();
}

void KillPrivileges(const RightsOf& rights_of, const Caller& caller,
                    std::optional<bool> kills, Attr& attr) {
  const uint32_t privileges = attr.mode & (S_ISUID | S_ISGID);
  if (privileges == 0 || kills == std::optional(false)) return;
  if (!kills) kills = !rights_of(caller).fsetid;
  if (!*kills) return;
  attr.mode =
      WithoutPrivileges(attr.mode, !LosesSetGroupId(rights_of, caller, attr));
  const bool lost = (attr.mode & privileges) != privileges;
  if (lost && caller.lost_privileges != nullptr) *caller.lost_privileges = true;
}

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// An object of the base or the vault, held by a descriptor. Operations on the
/// descriptor affect this object, even if another one gets its name.
struct OpenObject {
  UniqueFd fd;  ///< O_PATH
  struct stat st{};

  [[nodiscard]] bool IsDirectory() const { return S_ISDIR(st.st_mode); }
};

/// Opens the object `name` in `dir`; of a symbolic link, the link itself.
Result<OpenObject> OpenObjectAt(int dir, const std::string& name);

/// chmod(2) of an open object that is not a symbolic link, also if its mode
/// denies its owner access: 0, or -1 and errno.
int ChangeMode(const UniqueFd& object, mode_t mode);

/// Opens an open regular file for reading or writing. `path` is for messages.
Result<UniqueFd> Reopen(const UniqueFd& object, int flags,
                        const std::string& path);

/// linkat(2) of the open object, whatever has its name now: 0, or -1 and errno.
int LinkObject(const UniqueFd& object, int dir, const std::string& name);

}  // namespace txfs

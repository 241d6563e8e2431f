#pragma once

#include <sys/stat.h>

#include <string>

#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// An object of the base or the vault, held by a descriptor: whatever gets its
/// name meanwhile, what is done to the descriptor is done to this object.
struct OpenObject {
  UniqueFd fd;  ///< O_PATH
  struct stat st{};

  [[nodiscard]] bool IsDirectory() const { return S_ISDIR(st.st_mode); }
};

/// What has `name` in `dir`; of a symbolic link the link itself.
Result<OpenObject> OpenObjectAt(int dir, const std::string& name);

/// chmod(2) of an open object that is no symbolic link, also of one that its
/// mode closes to us: 0, or -1 and errno.
int ChangeMode(const UniqueFd& object, mode_t mode);

/// openat(2) of an open object: its regular file for reading or writing.
Result<UniqueFd> Reopen(const UniqueFd& object, int flags,
                        const std::string& path);

/// linkat(2) of an open object, not of what has its name: 0, or -1 and errno.
int LinkObject(const UniqueFd& object, int dir, const std::string& name);

}  // namespace txfs

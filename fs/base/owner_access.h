#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "fs/base/base_directory.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Whether the mode of a directory of the calling user forbids this user to
/// list or search it. Never for root.
[[nodiscard]] bool DeniesOwner(const struct stat& directory);

/// Whether this user may write to `name` in `dir`, or may change its mode so
/// that it may. True if nothing is there.
[[nodiscard]] bool MayWrite(int dir, const std::string& name);
/// Whether the kernel lets this user make hard links of `name` in `dir`
/// (fs.protected_hardlinks of proc(5)).
[[nodiscard]] bool MayLink(int dir, const std::string& name);
/// Whether the sticky bit of `dir` forbids this user to rename or remove `name`
/// in it.
[[nodiscard]] bool IsStuck(int dir, const std::string& name);

/// Widens the modes of directories of the calling user that deny access to
/// their owner, until destruction. Does not change other users' directories.
class OwnerAccess {
 public:
  /// Widens directory `path` of `base` and those above it.
  OwnerAccess(const BaseDirectory& base, const std::string& path);
  ~OwnerAccess();
  OwnerAccess(const OwnerAccess&) = delete;
  OwnerAccess& operator=(const OwnerAccess&) = delete;

  /// Leaves the modes wide: the caller sets them.
  void Keep() { widened_.clear(); }

 private:
  struct Widened {
    UniqueFd directory;
    mode_t mode;
  };
  void Widen(const UniqueFd& directory);

  std::vector<Widened> widened_;  ///< parents first
};

/// The Result of `look`, which reads in directory `path` of `base`. On EACCES,
/// calls it again with OwnerAccess.
template <class Look>
auto AsOwner(const BaseDirectory& base, const std::string& path, Look look) {
  auto seen = look();
  if (seen || seen.error().code != EACCES) return seen;
  const OwnerAccess access(base, path);
  return look();
}

}  // namespace txfs

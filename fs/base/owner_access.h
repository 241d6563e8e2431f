#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "fs/base/base_directory.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Whether a directory of ours keeps us from listing it or looking up in it:
/// never root.
[[nodiscard]] bool DeniesOwner(const struct stat& directory);

/// Lets us into directories of ours that deny it to their owner, by a wider
/// mode, until destruction. What is not ours stays as it is.
class OwnerAccess {
 public:
  /// Into directory `path` of `base` and those above it.
  OwnerAccess(const BaseDirectory& base, const std::string& path);
  ~OwnerAccess();
  OwnerAccess(const OwnerAccess&) = delete;
  OwnerAccess& operator=(const OwnerAccess&) = delete;

  /// Leaves them open: somebody else sets their modes.
  void Keep() { widened_.clear(); }

 private:
  struct Widened {
    UniqueFd directory;
    mode_t mode;
  };
  void Widen(const UniqueFd& directory);

  std::vector<Widened> widened_;  ///< parents first
};

/// The Result of `look`, which looks into directory `path` of `base`; where
/// that is denied, with ourselves let in.
template <class Look>
auto AsOwner(const BaseDirectory& base, const std::string& path, Look look) {
  auto seen = look();
  if (seen || seen.error().code != EACCES) return seen;
  const OwnerAccess access(base, path);
  return look();
}

}  // namespace txfs

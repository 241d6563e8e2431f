#pragma once

#include <string>
#include <string_view>

#include "fs/base/base_directory.h"
#include "fs/base/name_kind.h"
#include "fs/tree/tree.h"
#include "policy/rule.h"

namespace txfs {

/// The rule that refuses what OwnNames finds: of every mount, whatever its
/// policy.
[[nodiscard]] const policy::Rule& OwnNamesRule();

/// Finds names of txfs's own in the tree, at any depth: a later mount of a
/// directory, or a command in it, would take them for its own. Requires the
/// tree lock.
class OwnNames {
 public:
  OwnNames(const Tree& tree, const BaseDirectory& base)
      : tree_(tree), base_(base) {}

  /// Whether `name` in `directory` is one, or below one.
  [[nodiscard]] bool Has(const Inode& directory, std::string_view name) const {
    return IsOwn(directory, name) || IsBelow(directory);
  }
  /// Whether a known name of `inode` is one, or below one. No orphan's is.
  [[nodiscard]] bool HasAny(const Inode& inode) const;
  /// Whether `name` in `directory` is one itself.
  [[nodiscard]] bool IsOwn(const Inode& directory, std::string_view name) const;
  /// Whether the base's name `path` is one, or below one.
  [[nodiscard]] bool IsInBase(std::string_view path) const;

 private:
  /// Whether the directory is one, or below one.
  [[nodiscard]] bool IsBelow(const Inode& directory) const;
  /// Whether case is folded in the directory, or where a commit makes it.
  [[nodiscard]] bool Folds(const Inode& directory) const;
  [[nodiscard]] bool FoldsInBase(const std::string& path) const;

  const Tree& tree_;
  const BaseDirectory& base_;
};

}  // namespace txfs

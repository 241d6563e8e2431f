#pragma once

#include <string>
#include <string_view>

#include "fs/base/base_directory.h"
#include "fs/base/name_kind.h"
#include "fs/tree/tree.h"
#include "policy/rule.h"

namespace txfs {

/// The rule that refuses the names that OwnNames finds. It applies to every
/// mount, whatever the policy.
[[nodiscard]] const policy::Rule& OwnNamesRule();

/// Finds names that txfs reserves for its own files, at any depth: a later
/// mount of a directory, or a txfs command in it, would use such files.
/// Requires the tree lock.
class OwnNames {
 public:
  OwnNames(const Tree& tree, const BaseDirectory& base)
      : tree_(tree), base_(base) {}

  /// Whether `name` in `directory` is reserved, or below a reserved name.
  [[nodiscard]] bool Has(const Inode& directory, std::string_view name) const {
    return IsOwn(directory, name) || IsBelow(directory);
  }
  /// Whether a known name of `inode` is reserved, or below a reserved name.
  /// False for an orphan.
  [[nodiscard]] bool HasAny(const Inode& inode) const;
  /// Whether `name` in `directory` itself is reserved.
  [[nodiscard]] bool IsOwn(const Inode& directory, std::string_view name) const;
  /// Whether the base path `path` is reserved, or below a reserved name.
  [[nodiscard]] bool IsInBase(std::string_view path) const;

 private:
  /// Whether the directory is reserved, or below a reserved name.
  [[nodiscard]] bool IsBelow(const Inode& directory) const;
  /// Whether the directory ignores case, or will when a commit creates it.
  [[nodiscard]] bool Folds(const Inode& directory) const;
  [[nodiscard]] bool FoldsInBase(const std::string& path) const;

  const Tree& tree_;
  const BaseDirectory& base_;
};

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "fs/base/base_directory.h"
#include "journal/change.h"
#include "journal/support/result.h"

namespace txfs {

/// The attributes of a base object; all content is the base's.
[[nodiscard]] Attr AttrOf(const struct stat& st);

/// A directory of the base: its path as the transaction knows it, and the one
/// where it is now.
struct PlaceOfDirectory {
  std::string path, place;
};

/// A base object as the tree first sees it.
struct BaseObject {
  std::string path;
  struct stat st{};
  std::string symlink;
};

/// The object of `base` at `path` now, if any.
[[nodiscard]] Result<std::optional<BaseObject>> FindObject(
    const BaseDirectory& base, const std::string& path);

}  // namespace txfs

#pragma once

#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs {

/// Whether names in the directory may lead to the same object when they differ
/// in case, or in what else a filesystem folds. True also where that is not
/// known: only filesystems that are known to tell all names apart count as
/// such, and of these no directory whose inode says that it folds case.
[[nodiscard]] bool FoldsCase(int directory);

/// What a name of ASCII is compared as with others that fold to it: ASCII in
/// lower case, U+017F as the "s" that it folds to, without code points that
/// are ignored, and without what Windows drops at the end of a name: dots,
/// blanks, and a stream after a colon. Every name that an ext4, f2fs, FAT,
/// NTFS or HFS+ takes for a name of ASCII gives the same here.
[[nodiscard]] std::string FoldedName(std::string_view name);

/// Whether the directory lists `name` as it is, byte for byte.
Result<bool> ListsName(int directory, std::string_view name);

}  // namespace txfs

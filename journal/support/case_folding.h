#pragma once

#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs {

/// Whether names in the directory that differ in case, or in other characters
/// that a filesystem folds, may lead to the same object. False only if the
/// filesystem is known to fold at most in directories with FS_CASEFOLD_FL, and
/// this one does not have the flag.
[[nodiscard]] bool FoldsCase(int directory);

/// The form of an ASCII name for comparison with names that fold to it:
/// - ASCII letters in lower case, and U+017F as "s", to which it folds;
/// - without ignored code points;
/// - without the end that Windows drops: dots, blanks, and a stream after a
///   colon.
///
/// All names that ext4, f2fs, FAT, NTFS or HFS+ take for the same ASCII name
/// give the same result.
[[nodiscard]] std::string FoldedName(std::string_view name);

/// Whether the directory lists `name` byte for byte.
Result<bool> ListsName(int directory, std::string_view name);

}  // namespace txfs

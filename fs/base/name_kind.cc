#include "fs/base/name_kind.h"

#include <algorithm>
#include <string>

#include "fs/base/base_directory.h"
#include "journal/support/case_folding.h"

namespace txfs {
namespace {

/// The short name that FAT and NTFS give one of ours, such as "TXFS~1".
bool IsShortName(std::string_view folded) {
  constexpr size_t kMaxShortName = 8;
  const size_t tilde = folded.find('~');
  return folded.size() <= kMaxShortName && folded.starts_with("tx") &&
         tilde < folded.size() - 1 &&
         folded.find_first_not_of("0123456789", tilde + 1) ==
             std::string_view::npos;
}

}  // namespace

NameKind KindOfName(std::string_view name) {
  const char first = name.empty() ? 'a' : name.front();
  const bool is_ascii = static_cast<unsigned char>(first) < 0x80;
  // Nearly no name; but a character that is ignored may come first.
  const bool may_be = first == '.' || first == 't' || first == 'T' || !is_ascii;
  if (!may_be) return NameKind::kPlain;
  if (name == kStoreName || name.starts_with(kMountVaults)) {
    return NameKind::kOwn;
  }
  const std::string folded = FoldedName(name);
  const bool is_ours = folded == kStoreName ||
                       folded.starts_with(kMountVaults) || IsShortName(folded);
  return is_ours ? NameKind::kFolded : NameKind::kPlain;
}

}  // namespace txfs

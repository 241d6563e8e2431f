#include "journal/support/stored.h"

namespace txfs {

namespace {

bool LeadsDown(std::string_view name) {
  constexpr std::string_view kForbidden("/\0", 2);
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(kForbidden) == std::string_view::npos;
}

}  // namespace

bool IsEntryName(std::string_view name) {
  return name.size() <= kStoredNameMax && LeadsDown(name);
}

bool IsPathBelow(std::string_view path) {
  if (path.empty()) return true;
  for (;;) {
    const size_t slash = path.find('/');
    if (!LeadsDown(path.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

bool IsRangeOfFile(uint64_t offset, uint64_t length) {
  return offset <= kStoredNumberMax && length <= kStoredNumberMax - offset;
}

}  // namespace txfs

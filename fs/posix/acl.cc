#include "fs/posix/acl.h"

#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "journal/support/bytes.h"
#include "journal/support/checksum.h"

namespace txfs {
namespace {

// Little-endian, like all of an encoding that txfs stores.
constexpr size_t kHeader = 4;      // u32 version
constexpr size_t kEntry = 8;       // u16 tag, u16 permissions, u32 id
constexpr size_t kPermission = 2;  // within an entry

uint16_t NumberAt(std::string_view value, size_t at) {
  Decoder in(AsBytes(value.substr(at, sizeof(uint16_t))));
  return in.Get<uint16_t>();
}

uint32_t VersionOf(std::string_view value) {
  Decoder in(AsBytes(value.substr(0, kHeader)));
  return in.Get<uint32_t>();
}

/// Where the permissions of the entries are that are also in the mode, or 0.
struct ClassEntries {
  size_t owner = 0, group = 0, mask = 0, other = 0;
  bool has_named = false;

  [[nodiscard]] size_t group_class() const { return mask != 0 ? mask : group; }
};

std::optional<ClassEntries> FindClasses(std::string_view value) {
  const bool is_list = value.size() > kHeader &&
                       (value.size() - kHeader) % kEntry == 0 &&
                       VersionOf(value) == POSIX_ACL_XATTR_VERSION;
  if (!is_list) return std::nullopt;
  ClassEntries classes;
  for (size_t at = kHeader; at < value.size(); at += kEntry) {
    const size_t permission = at + kPermission;
    switch (NumberAt(value, at)) {
      case ACL_USER_OBJ:
        classes.owner = permission;
        break;
      case ACL_GROUP_OBJ:
        classes.group = permission;
        break;
      case ACL_MASK:
        classes.mask = permission;
        break;
      case ACL_OTHER:
        classes.other = permission;
        break;
      case ACL_USER:
      case ACL_GROUP:
        classes.has_named = true;
        break;
      default:
        return std::nullopt;
    }
  }
  const bool is_whole = classes.owner != 0 && classes.group != 0 &&
                        classes.other != 0 &&
                        (classes.mask != 0 || !classes.has_named);
  if (!is_whole) return std::nullopt;
  return classes;
}

void SetPermission(std::string& value, size_t at, uint32_t bits) {
  const auto permission = static_cast<uint16_t>(bits & 7);
  value[at] = static_cast<char>(permission);
  value[at + 1] = 0;
}

}  // namespace

std::optional<AclMode> ModeOfAcl(std::string_view value) {
  const auto classes = FindClasses(value);
  if (!classes) return std::nullopt;
  const auto bits = [&](size_t at) -> uint32_t {
    return NumberAt(value, at) & 7U;
  };
  return AclMode{.bits = bits(classes->owner) << 6 |
                         bits(classes->group_class()) << 3 |
                         bits(classes->other),
                 .is_minimal = classes->mask == 0};
}

std::string AclWithMode(std::string value, uint32_t mode) {
  const auto classes = FindClasses(value);
  if (!classes) return value;
  SetPermission(value, classes->owner, mode >> 6);
  SetPermission(value, classes->group_class(), mode >> 3);
  SetPermission(value, classes->other, mode);
  return value;
}

uint64_t ToldAcl(const Result<std::string>& acl, uint32_t mode) {
  constexpr uint64_t kNone = 1;
  if (!acl) return kNone;
  const uint64_t sum = Checksum(AsBytes(AclWithMode(*acl, mode)));
  return std::max(sum, kNone + 1);
}

bool IsAclAsTold(uint64_t told, uint32_t mode, const Result<std::string>& now) {
  if (!now && now.error().code != ENODATA) return false;
  if (told != kAclNotAsked) return told == ToldAcl(now, mode);
  return !now || (mode & S_IRWXG) != 0;
}

}  // namespace txfs

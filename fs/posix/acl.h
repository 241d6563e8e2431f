#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs {

// Access control lists of POSIX.1e draft 17, as Linux has them in extended
// attributes (linux/posix_acl_xattr.h). Pure functions.
//
// The entries of the owner, of the mask (of the owning group, if there is no
// mask) and of others are the same nine bits as those of the mode. So the
// transaction stores a list once: the mode decides these entries, and chmod(2)
// does not change the stored list.

/// What an access control list says about the mode.
struct AclMode {
  uint32_t bits = 0;        ///< 0777 at most
  bool is_minimal = false;  ///< the mode says it all: nothing to store
};
/// None: `value` is not an access control list.
[[nodiscard]] std::optional<AclMode> ModeOfAcl(std::string_view value);

/// `value` with the permissions of `mode`. Unchanged if it is not an access
/// control list.
[[nodiscard]] std::string AclWithMode(std::string value, uint32_t mode);

/// Stands for the access control list of a base object of `mode` that the
/// kernel received, or for the answer that there is none (ENODATA). Never
/// kAclNotAsked.
[[nodiscard]] uint64_t ToldAcl(const Result<std::string>& acl, uint32_t mode);
/// The kernel asks for a list only to admit a user who is not the owner, and
/// only if the mode gives the group a permission.
inline constexpr uint64_t kAclNotAsked = 0;
/// Whether the kernel, which has `told` and `mode` of a base object, admits
/// whom `now` admits, apart from the mode.
[[nodiscard]] bool IsAclAsTold(uint64_t told, uint32_t mode,
                               const Result<std::string>& now);

}  // namespace txfs

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/base/result.h"
#include "policy/load.h"
#include "policy/policy.h"

namespace txfs::policy {

/// Reads and loads the policy file `path`. Refused (EPERM) when somebody but
/// its owner may write it, or when that is neither root nor the caller; and as
/// Load does.
Result<Loaded> LoadFile(const std::string& path);

/// What the files say together, the first the weakest. A later one adds rules
/// and takes none away, so it only ever makes the whole stricter. EINVAL when
/// two have a rule of the same id.
Result<std::shared_ptr<const Policy>> Combine(std::vector<Loaded> files);

}  // namespace txfs::policy

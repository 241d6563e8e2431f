#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fs/tree/tree.h"

namespace txfs {

using XattrMap = std::map<std::string, std::string>;

/// Key under which an inode with tracked attributes of its own keeps checksums
/// of the base object's (docs/format.md, "Tables"). No attribute can have this
/// name. Older stores have no such entry.
inline constexpr std::string_view kXattrsBefore = "before";

[[nodiscard]] std::string EncodeXattrsBefore(const XattrMap& base);

/// The tracked attributes of `inode`, which has its own.
[[nodiscard]] XattrMap OwnXattrs(const Inode& inode);

/// The tracked attributes after a merge: the changes of the transaction applied
/// to `base`, which the base object has now.
[[nodiscard]] XattrMap MergeXattrs(const Inode& inode, XattrMap base);

/// Whether both sides changed an attribute to different values.
[[nodiscard]] bool XattrsClash(const Inode& inode, const XattrMap& base);

}  // namespace txfs

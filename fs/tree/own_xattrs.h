#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fs/tree/tree.h"

namespace txfs {

using XattrMap = std::map<std::string, std::string>;

/// The name, which no attribute can have, under which an object of the base
/// whose user.* attributes are its own keeps what they were in the base: their
/// checksums (docs/format.md, "Tables"). Those of older stores have none.
inline constexpr std::string_view kXattrsBefore = "before";

[[nodiscard]] std::string EncodeXattrsBefore(const XattrMap& base);

/// The user.* attributes of `inode`, which are its own.
[[nodiscard]] XattrMap OwnXattrs(const Inode& inode);

/// What the base object is to have, of which `base` is what it has now: those
/// that the transaction changed as it has them, the others as they are.
[[nodiscard]] XattrMap MergeXattrs(const Inode& inode, XattrMap base);

/// Whether both sides changed one, and not to the same.
[[nodiscard]] bool XattrsClash(const Inode& inode, const XattrMap& base);

}  // namespace txfs

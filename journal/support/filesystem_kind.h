#pragma once

#include <sys/statfs.h>

namespace txfs {

/// Whether a server or another program serves the files of `filesystem`, of
/// statfs(2): a network filesystem or FUSE. LMDB needs locks and shared
/// mappings that see each other, and such a filesystem promises not both.
[[nodiscard]] bool IsServedElsewhere(const struct statfs& filesystem);

}  // namespace txfs

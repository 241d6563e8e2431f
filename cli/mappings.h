#pragma once

#include <sys/types.h>

namespace txfs::cli {

/// Waits until what processes have stored through shared mappings of files on
/// the mount with st_dev `device` has been written back. Of processes whose
/// mappings we may not see it is only begun. syncfs(2) begins all of it, but of
/// FUSE it does not wait for any since Linux 6.18 (measured: it returns while
/// the daemon is stopped); fsync(2) of a file does. When a mapping ends, the
/// kernel itself writes back.
void FlushMappings(dev_t device);

}  // namespace txfs::cli

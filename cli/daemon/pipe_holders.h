#pragma once

#include <cstdint>

namespace txfs::cli {

/// Kills the processes of the user that have the pipe with this inode number
/// open, and waits for their end.
void EndHoldersOfPipe(uint64_t inode);

}  // namespace txfs::cli

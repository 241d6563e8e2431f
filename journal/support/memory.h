#pragma once

namespace txfs {

// Settings of the C library's memory. Those of malloc need glibc; with another
// C library, they have no effect.

/// Makes all threads allocate from few arenas, so that threads reuse what other
/// threads freed. Otherwise each thread that ends leaves megabytes in its
/// arena. Call it before there are threads.
void ShareArenas();

/// Gives this thread and later threads a larger stack: functions that go
/// through a directory tree recurse once per level. Call it before there are
/// threads. Stack memory is allocated when it is used.
void DeepenStacks();

/// Returns free memory to the kernel. Takes milliseconds.
void ReturnFreeMemory();

}  // namespace txfs

#pragma once

namespace txfs {

// What the C library keeps of memory that was freed. Where it is another one
// than glibc, these do nothing.

/// Lets all threads allocate from few arenas: what one has freed others use.
/// Else each that comes and goes leaves megabytes behind in the one it had. To
/// be called before there are threads.
void ShareArenas();

/// Lets this thread and those to come recurse deeper than by default: what goes
/// up a tree of directories does, level by level. To be called before there are
/// threads. Memory is taken when it is used.
void DeepenStacks();

/// Gives what is free back to the system. Takes milliseconds.
void ReturnFreeMemory();

}  // namespace txfs

#pragma once

namespace txfs {

/// Stands before each call that changes what a crash would leave behind, in
/// commit, recovery, undo and the store. Does nothing but in tests, which let
/// the process die there.
void CrashPoint();

/// Called at every CrashPoint from now on; null: nothing is.
void SetCrashHook(void (*hook)());

}  // namespace txfs

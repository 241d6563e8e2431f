#pragma once

namespace txfs {

/// Marks a place in commit, recovery, undo or the store before a call that
/// changes what a crash would leave. Does nothing except in tests, which make
/// the process die there.
void CrashPoint();

/// Makes every CrashPoint call `hook`; null: none.
void SetCrashHook(void (*hook)());

}  // namespace txfs

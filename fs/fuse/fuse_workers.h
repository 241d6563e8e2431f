#pragma once

#include <functional>

#include "fs/fuse/fuse_libfuse.h"
#include "journal/support/result.h"

namespace txfs {

/// Serves `session` with `threads` threads until its mount is gone or `wake`,
/// an eventfd, is written to; then calls `ends`, while requests are still
/// served. Requests in progress are finished.
///
/// libfuse's own loop takes two locks for each request and cannot be woken
/// from a signal handler.
Status ServeUntilWoken(fuse_session* session, unsigned threads, int wake,
                       const std::function<void()>& ends);

/// The calling thread, which is one of those, is about to wait for something
/// else than the kernel: another one serves in its place. False: none can be
/// had.
[[nodiscard]] bool BeginStandIn();
/// It serves again. Only after a BeginStandIn that returned true.
void EndStandIn();

}  // namespace txfs

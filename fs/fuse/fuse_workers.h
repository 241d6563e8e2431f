#pragma once

#include <functional>

#include "fs/fuse/fuse_libfuse.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs {

/// Serves `session` with `threads` threads until its mount is gone or `wake`,
/// an eventfd, is written to. Then calls `ends`, while requests are still
/// served, and finishes the requests in progress.
///
/// Requests that `answer` answers do not reach libfuse.
///
/// libfuse's own loop takes two locks for each request and cannot be woken from
/// a signal handler.
Status ServeUntilWoken(fuse_session* session, unsigned threads, int wake,
                       const std::function<bool(ByteSpan request)>& answer,
                       const std::function<void()>& ends);

/// Call it on a worker thread before it waits for something other than the
/// kernel: another thread serves in its place. False if there is none.
[[nodiscard]] bool BeginStandIn();
/// The thread serves again. Only after a BeginStandIn that returned true.
void EndStandIn();

}  // namespace txfs

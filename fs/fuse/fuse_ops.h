#pragma once

#include <atomic>
#include <functional>
#include <string>

#include "fs/fuse/fuse_announce.h"
#include "fs/fuse/fuse_libfuse.h"
#include "fs/fuse/fuse_refused.h"
#include "fs/fuse/fuse_scans.h"
#include "fs/fuse/fuse_stale.h"
#include "fs/fuse/fuse_wire.h"
#include "fs/posix/filesystem.h"

namespace txfs {

/// The session's user data, for handlers.
struct FuseContext {
  Filesystem& fs;
  std::function<void(const std::string&)> log;
  FuseWire wire{};
  FuseScans scans{};
  fuse_session* session = nullptr;        ///< set before the first request
  RefusedPages* refused_pages = nullptr;  ///< the same
  StaleTold* stale_told = nullptr;        ///< the same
  Announcer* announcer = nullptr;         ///< the same
  /// Whether the kernel sends no OPEN and OPENDIR; set in INIT.
  std::atomic<bool> zero_message_open{false};
  std::atomic<bool> zero_message_opendir{false};
};

/// The handlers. Each decodes its request, makes one call and replies.
const fuse_lowlevel_ops& FuseOps();

}  // namespace txfs

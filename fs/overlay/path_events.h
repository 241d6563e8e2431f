#pragma once

#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/posix/filesystem.h"
#include "fs/posix/path_event.h"

namespace txfs {

/// The events of the changes that made `stale` stale, sorted by path.
/// Directories have none for their attributes. Of more than kMostPathEvents
/// changes only the directories have an event; of more directories, only the
/// root.
std::vector<PathEvent> EventsOf(const Frozen& frozen, const StaleCaches& stale);

}  // namespace txfs

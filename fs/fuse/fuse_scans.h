#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "journal/support/types.h"

namespace txfs {

/// Decides which entries of a directory the kernel gets with attributes.
///
/// The kernel reads on only when it has passed the entries that it got to the
/// program, and most programs list a directory to its end before they look at
/// what they have read. So of a large directory, the first reply has
/// attributes, and the others do not, unless files of other large directories
/// were looked up one by one a short time ago. That is what a scan for
/// attributes does, such as `ls -l`, and a scan for names does not.
/// Thread-safe.
class FuseScans {
 public:
  /// Milliseconds for which a lookup counts.
  static constexpr uint64_t kRecent = 5000;

  /// Whether entries of `directory` after `cookie` go with their attributes.
  /// `now`: any clock, milliseconds.
  bool WantsAttributes(Ino directory, uint64_t cookie, uint64_t now);
  /// Notes that a file in `directory` was looked up.
  void OnLookup(Ino directory, uint64_t now);

 private:
  /// Directories of which entries went without attributes; the oldest makes
  /// room.
  std::array<std::atomic<uint64_t>, 16> bare_{};
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> wanted_until_{0};
};

}  // namespace txfs

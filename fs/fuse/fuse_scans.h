#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "journal/support/types.h"

namespace txfs {

/// Decides which entries of a directory the kernel gets with attributes:
/// always the directories, because a walk looks each of them up.
///
/// The kernel reads on only when it has passed the entries that it got to the
/// program, and most programs list a directory to its end before they look at
/// what they have read. So of a large directory, the files in the first reply
/// have attributes, and the others do not, unless files of other large
/// directories were looked up one by one a short time ago. That is what a scan
/// for attributes does, such as `ls -l`, and a scan for names does not. After a
/// large directory of which no file was looked up, files in first replies have
/// none either. Thread-safe.
class FuseScans {
 public:
  /// Milliseconds for which a scan counts.
  static constexpr uint64_t kRecent = 5000;

  /// Whether files in `directory` after `cookie` go with their attributes.
  /// `now`: any clock, milliseconds.
  bool WantsAttributes(Ino directory, uint64_t cookie, uint64_t now);
  /// Whether there is a scan for attributes, so that all files go with them.
  [[nodiscard]] bool IsScanned(uint64_t now) const {
    return now < wanted_until_.load(std::memory_order_relaxed);
  }
  /// Notes that a file in `directory` was looked up.
  void OnLookup(Ino directory, uint64_t now);

 private:
  [[nodiscard]] bool IsBare(Ino directory) const;
  void NoteBare(Ino directory);

  /// Directories of which entries went without attributes; the oldest makes
  /// room.
  std::array<std::atomic<uint64_t>, 16> bare_{};
  std::atomic<size_t> next_{0};
  std::atomic<uint64_t> wanted_until_{0};
  /// Until when a scan for names is assumed; ends at a lookup.
  std::atomic<uint64_t> names_until_{0};
};

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/mutex.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// Results of lstat(2) for the entries of a directory that the kernel will ask
/// for next: looked at while the program takes those before. Thread-safe.
class LookAhead {
 public:
  using Stats = std::vector<Result<struct stat>>;
  struct Entries {
    Ino directory = kNoIno;
    uint64_t time = 0;  ///< Clock::Steady
    std::vector<std::string> names;
    Stats stats;  ///< of each name
  };
  /// Milliseconds after which entries are out of date: another program may have
  /// changed the base meanwhile.
  static constexpr uint64_t kValid = 1000;

  /// Replaces what is there for this directory, or for another one.
  void Put(Entries entries);
  /// Those for the first of `names`, as far as they are there; they are then
  /// gone. None if they are out of date.
  [[nodiscard]] Stats Take(Ino directory, uint64_t now,
                           std::span<const std::string_view> names);
  void Clear();

 private:
  Mutex mutex_;
  std::array<Entries, 4> entries_ GUARDED_BY(mutex_);
};

}  // namespace txfs

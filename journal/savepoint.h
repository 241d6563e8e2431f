#pragma once

#include <string>

#include "journal/support/types.h"

namespace txfs {

/// A point in a transaction to which rollback can return: the state after all
/// changes up to `lsn`, which is its own entry in the log.
struct Savepoint {
  std::string name;
  Lsn lsn = kNoLsn;
  Timestamp time;

  bool operator==(const Savepoint&) const = default;
};

}  // namespace txfs

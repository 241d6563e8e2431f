#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/planning/selection.h"
#include "journal/change.h"
#include "journal/image.h"
#include "journal/support/result.h"

namespace txfs {

/// What a partial commit will do to the base.
struct PartCommit {
  std::map<Ino, uint64_t> made;  ///< st_ino of the objects that it makes
  std::set<Ino> touched;  ///< directories whose times it sets because their
                          ///< entries change
};

/// Plans the change that removes `selection` from a transaction: after a commit
/// it is in the base, after a discard (`commit` is null) it never was. A
/// directory at its base path that has no other change is removed, too.
/// `tables`: all rows of the journal. The caller fills in time, pid, uid and
/// program.
Result<Change> PlanSettlement(Frozen& frozen, const Selection& selection,
                              const Image& tables, const PartCommit* commit);

}  // namespace txfs

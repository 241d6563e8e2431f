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

/// What the commit of a part is going to do to the base.
struct PartCommit {
  std::map<Ino, uint64_t> made;  ///< st_ino of the objects that it makes
  std::set<Ino> touched;         ///< directories whose times it sets, since
                                 ///< something happens in them
};

/// Plans the change by which a transaction goes on without `selection`: what
/// was in it is the base's from now on, or never was. A directory that lies
/// where the base has it, and had no other change, goes with it. `tables`: all
/// that the journal has. `commit`: null for a discard. The caller fills in
/// whose change it is.
Result<Change> PlanSettlement(Frozen& frozen, const Selection& selection,
                              const Image& tables, const PartCommit* commit);

}  // namespace txfs

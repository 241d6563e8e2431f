#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "fs/overlay/overlay.h"
#include "fs/planning/selection.h"
#include "journal/change.h"
#include "journal/image.h"
#include "journal/support/result.h"

namespace txfs {

/// How a part of a transaction ends: in the base, or not at all.
enum class PartEnd { kCommitted, kDiscarded };

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
Result<Change> PlanSettlement(OverlayFilesystem::Frozen& frozen,
                              const Selection& selection, const Image& tables,
                              const PartCommit* commit);

/// What a planned change means for the tree as it was before.
class Settlement {
 public:
  Settlement(const Tree& tree, const Change& change);

  /// Its record goes: it is the base's, or gone.
  [[nodiscard]] bool IsSettled(Ino ino) const { return settled_.contains(ino); }
  /// Where the inode is to be found in the base afterwards; nothing: nowhere.
  [[nodiscard]] std::vector<std::string> PathsAfter(const Inode& inode) const;

 private:
  [[nodiscard]] std::string PathAfter(const std::string& base_path) const;

  const Tree& tree_;
  const PartEnd end_;
  std::set<Ino> settled_;
  std::map<std::string, std::string> moves_;  ///< directories, old path to new
};

}  // namespace txfs

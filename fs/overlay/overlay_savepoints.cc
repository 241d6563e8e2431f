#include <algorithm>

#include "fs/overlay/overlay.h"

namespace txfs {

Result<Savepoint> OverlayFilesystem::MarkSavepoint(const Caller& caller,
                                                   const std::string& name,
                                                   const std::string& call) {
  Plan plan = StartPlan(Op::kSavepoint, caller);
  plan.change().path = name;
  plan.change().new_path = call;
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock lock(tree_mutex_);
  const Timestamp now = plan.now();
  const Lsn lsn = TRY(Accept(std::move(plan)));
  return Savepoint{name, lsn, now};
}

Result<size_t> OverlayFilesystem::ReadPast(
    const Inode& inode, const Savepoint& savepoint,
    const std::shared_ptr<Journal>& journal, uint64_t offset,
    MutableByteSpan out) {
  // The gate prevents the drop of the savepoint, which keeps the content.
  const ReaderLock gate(gate_);
  const auto savepoints = journal_->Savepoints();
  if (journal != journal_ ||
      std::ranges::find(savepoints, savepoint) == savepoints.end()) {
    return Fail(ENOENT, "savepoint \"" + savepoint.name + "\"");
  }
  ReadPlan plan;
  {
    const ReaderLock lock(tree_mutex_);
    plan = PlanRead(inode, offset, out.size());
  }
  plan.journal = journal_;
  return ReadPieces(plan, offset, out);
}

}  // namespace txfs

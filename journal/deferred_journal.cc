#include "journal/deferred_journal.h"

namespace txfs {

Result<Journal*> DeferredJournal::Begun() {
  if (Journal* begun = begun_) return begun;
  const MutexLock lock(mutex_);
  if (!journal_) journal_ = TRY(begin_());
  begun_ = journal_.get();
  return journal_.get();
}

}  // namespace txfs

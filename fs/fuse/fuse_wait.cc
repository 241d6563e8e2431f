#include "fs/fuse/fuse_wait.h"

#include <utility>

#include "fs/fuse/fuse_workers.h"
#include "fs/host/process_identity.h"

namespace txfs {

bool RequestWait::Begin(std::function<void()> on_signal) {
  if (!BeginStandIn()) return false;
  on_signal_ = std::move(on_signal);
  // Called under a lock of the request, on the thread that reads the news; here
  // when it was there before.
  fuse_req_interrupt_func(req_, OnInterrupt, this);
  return true;
}

bool RequestWait::HasToEnd() const { return IsToEnd(fuse_req_ctx(req_)->pid); }

void RequestWait::End() {
  // Waits for a call that is under way.
  fuse_req_interrupt_func(req_, nullptr, nullptr);
  on_signal_ = nullptr;
  EndStandIn();
}

void RequestWait::OnInterrupt(fuse_req_t, void* self) {
  static_cast<RequestWait*>(self)->on_signal_();
}

}  // namespace txfs

#pragma once

#include <functional>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/veto/approver.h"

namespace txfs {

/// The wait of a worker thread's request. Another worker serves meanwhile, and
/// the kernel reports signals to the process (FUSE_INTERRUPT).
class RequestWait final : public LongWait {
 public:
  /// Sets the request.
  void Handle(fuse_req_t req) { req_ = req; }

  bool Begin(std::function<void()> on_signal) override;
  [[nodiscard]] bool HasToEnd() const override;
  void End() override;

 private:
  static void OnInterrupt(fuse_req_t req, void* self);

  fuse_req_t req_ = nullptr;
  std::function<void()> on_signal_;
};

}  // namespace txfs

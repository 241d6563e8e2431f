#pragma once

#include <functional>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/veto/approver.h"

namespace txfs {

/// The wait of the request that a worker thread handles: another worker serves
/// meanwhile, and the kernel says when a signal came (FUSE_INTERRUPT).
class RequestWait final : public LongWait {
 public:
  /// From now on it is about `req`.
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

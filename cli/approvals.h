#pragma once

#include <sys/types.h>

#include <span>
#include <string>

#include "cli/framing.h"
#include "fs/approval_queue.h"
#include "fs/approver.h"
#include "journal/base/result.h"

namespace txfs::cli {

/// Gets answers to the questions of a mount's rules, and answers the requests
/// of the control protocol that are about them. Thread-safe.
class Approvals final : public Approver {
 public:
  explicit Approvals(std::string mountpoint)
      : mountpoint_(std::move(mountpoint)) {}

  Status Decide(const Caller& caller,
                std::span<const Question> questions) override;

  /// Whether `request` is for Handle.
  static bool IsAsked(const Json& request);
  /// Gives the reply to `sink`, as Dispatcher::Handle does. `peer` asks for it.
  Status Handle(const Json& request, const FrameSink& sink, pid_t peer);

  /// What waits is denied.
  void EndAll() { queue_.EndAll(); }
  /// The same, and so is what comes.
  void End() { queue_.Suspend(); }
  /// The same for as long as it lives.
  class Pause {
   public:
    explicit Pause(Approvals& approvals) : pause_(approvals.queue_) {}

   private:
    ApprovalQueue::Pause pause_;
  };

 private:
  Status Reply(const Json& request, pid_t peer);
  Status CheckPeer(const ApprovalQueue::Item& item, pid_t peer) const;

  const std::string mountpoint_;
  ApprovalQueue queue_;
};

}  // namespace txfs::cli

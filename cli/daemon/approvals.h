#pragma once

#include <sys/types.h>

#include <functional>
#include <span>
#include <string>

#include "cli/daemon/hook_process.h"
#include "cli/protocol/framing.h"
#include "fs/veto/approval_queue.h"
#include "fs/veto/approver.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Gets answers to the questions of a mount's rules, and handles the requests
/// of the control protocol for them. Thread-safe.
class Approvals final : public Approver {
 public:
  /// `transaction` returns the id of the open one.
  Approvals(std::string mountpoint, std::string workspace,
            std::function<std::string()> transaction)
      : mountpoint_(std::move(mountpoint)),
        workspace_(std::move(workspace)),
        transaction_(std::move(transaction)) {}

  Status Decide(const Caller& caller,
                std::span<const Question> questions) override;

  /// Whether Handle takes `request`.
  static bool IsAsked(const Json& request);
  /// Sends the reply to `sink`, as Dispatcher::Handle. `peer`: the requesting
  /// process.
  Status Handle(const Json& request, const FrameSink& sink, pid_t peer);

  /// Refuses a process in the mount a commit that accepts what is held.
  [[nodiscard]] Status CheckAccepts(const Json& request, pid_t peer) const;

  /// Denies all waiting questions.
  void EndAll() { queue_.EndAll(); }
  /// Denies all waiting and future questions.
  void End() { Suspend(); }
  /// Denies all waiting and new questions during its lifetime. For code that is
  /// about to wait for operations.
  class Pause {
   public:
    explicit Pause(Approvals& approvals) : approvals_(approvals) {
      approvals_.Suspend();
    }
    ~Pause() { approvals_.Resume(); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Approvals& approvals_;
  };

 private:
  void Suspend() {
    queue_.Suspend();
    hook_.Suspend();
  }
  void Resume() {
    hook_.Resume();
    queue_.Resume();
  }
  Status Put(const Caller& caller, const Question& question);
  Status AskSomebody(const Caller& caller, const Question& question);
  Status AskHook(const Caller& caller, const Question& question);
  Status Reply(const Json& request, pid_t peer);
  Status CheckPeer(const ApprovalQueue::Item& item, pid_t peer) const;
  [[nodiscard]] bool IsInMount(pid_t peer) const;

  const std::string mountpoint_;
  const std::string workspace_;
  const std::function<std::string()> transaction_;
  ApprovalQueue queue_;
  HookProcess hook_;
};

}  // namespace txfs::cli

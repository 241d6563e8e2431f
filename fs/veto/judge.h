#pragma once

#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/plan.h"
#include "fs/tree/tree.h"
#include "fs/veto/approver.h"
#include "fs/veto/base_links.h"
#include "fs/veto/inquiry.h"
#include "fs/veto/limit_meters.h"
#include "fs/veto/policy_check.h"
#include "journal/change.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs {

/// Decides whether an operation may be done: the policy in force, with what its
/// rules and limits need to know. Not thread-safe: the caller's commit gate
/// keeps the policy in place, and its tree lock the counts of the limits.
class Judge {
 public:
  /// `base` and `clock` outlive this. A null policy allows everything.
  Judge(const BaseDirectory& base, const Clock* clock,
        std::shared_ptr<const policy::Policy> policy)
      : base_(base), links_(base), meters_(clock), policy_(std::move(policy)) {
    meters_.Use(policy_);
  }

  /// Puts another policy in force. Requires both locks.
  void Use(std::shared_ptr<const policy::Policy> policy);
  [[nodiscard]] const std::shared_ptr<const policy::Policy>& policy() const {
    return policy_;
  }

  /// Judges the names that `plan` touches by rules; its caller and op are
  /// known. Requires the tree lock.
  PolicyCheck Check(const Tree& tree, Plan& plan) {
    return {policy_, tree, base_, links_, plan};
  }
  /// Fails when `inquiry`, if there is one, has questions about `change` that
  /// no limit refuses. Requires the tree lock.
  Status CheckAnswered(Inquiry* inquiry, Change& change, Tree& tree);
  /// Judges `change` by limits, before it is applied. Requires the tree lock.
  Status CheckLimits(Change& change, Tree& tree);
  /// The change that was judged last is done.
  void Count() { meters_.Count(); }

  /// These extents hold content no longer.
  void GiveBack(std::span<const Extent> freed) {
    if (!meters_.empty()) meters_.GiveBack(freed);
  }

  /// Whether some limit is a fraction of the base.
  [[nodiscard]] bool HasFractions() const;
  [[nodiscard]] LimitMeters& meters() { return meters_; }

  /// Another process changed the base.
  void ForgetBase();
  /// Directories of the tree have moved.
  void ForgetMoves() { links_.ForgetMoves(); }
  /// The tree changed by something else than an operation.
  void ForgetTree() { meters_.ForgetTree(); }

 private:
  const BaseDirectory& base_;
  BaseLinks links_;
  LimitMeters meters_;
  std::shared_ptr<const policy::Policy> policy_;
};

/// Gets answers to the questions of `inquiry` from `approver`; a denial where
/// that is null. No lock may be held.
Status Ask(Approver* approver, const Caller& caller, const Inquiry& inquiry);

/// Runs `work`, which does an operation for the caller that it is given; again,
/// each time that all its questions were answered with yes. No lock may be
/// held.
template <class Work>
std::invoke_result_t<Work, const Caller&> Answered(Approver* approver,
                                                   const Caller& caller,
                                                   const Work& work) {
  Inquiry inquiry;
  Caller asking = caller;
  asking.inquiry = &inquiry;
  for (;;) {
    auto result = work(asking);
    if (result || !inquiry.due()) return result;
    if (Status answer = Ask(approver, caller, inquiry); !answer) {
      return std::unexpected(std::move(answer).error());
    }
    inquiry.Grant();
  }
}

}  // namespace txfs

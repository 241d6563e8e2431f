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

/// Decides whether an operation is allowed: the policy in force, with the state
/// that its rules and limits need. Not thread-safe: the caller's commit gate
/// guards the policy, and its tree lock the counts of the limits.
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

  /// Checks by rules the names that `plan` touches. Requires its caller and
  /// operation, and the tree lock.
  PolicyCheck Check(const Tree& tree, Plan& plan) {
    return {policy_, tree, base_, links_, plan};
  }
  /// Fails if `inquiry` has open questions: with the refusal of a limit, or
  /// with a denial that makes the questions due. Null has none. Requires the
  /// tree lock.
  Status CheckAnswered(Inquiry* inquiry, Change& change, Tree& tree);
  /// Judges `change` by limits. Call before Apply. Requires the tree lock.
  Status CheckLimits(Change& change, Tree& tree);
  /// Counts the change that was judged last.
  void Count() { meters_.Count(); }

  /// Reduces the counts by extents that were freed.
  void GiveBack(std::span<const Extent> freed) {
    if (!meters_.empty()) meters_.GiveBack(freed);
  }

  /// Whether a limit is a fraction of the base.
  [[nodiscard]] bool HasFractions() const;
  [[nodiscard]] LimitMeters& meters() { return meters_; }

  /// Drops the state derived from the base, after a change of it.
  void ForgetBase();
  /// Drops the state derived from the places of directories.
  void ForgetMoves() { links_.ForgetMoves(); }
  /// Drops the counts, after a change of the tree without an operation.
  void ForgetTree() { meters_.ForgetTree(); }

 private:
  const BaseDirectory& base_;
  BaseLinks links_;
  LimitMeters meters_;
  std::shared_ptr<const policy::Policy> policy_;
};

/// Gets answers to the questions of `inquiry` from `approver`; null denies.
/// Hold no lock.
Status Ask(Approver* approver, const Caller& caller, const Inquiry& inquiry);

/// Runs `work`, an operation for the given caller, again each time that all its
/// questions are answered with yes. Hold no lock.
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

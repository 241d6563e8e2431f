#include "fs/veto/judge.h"

#include <algorithm>

namespace txfs {

void Judge::Use(std::shared_ptr<const policy::Policy> policy) {
  links_.Clear();
  policy_ = std::move(policy);
  meters_.Use(policy_);
}

Status Judge::CheckAnswered(Inquiry* inquiry, Change& change, Tree& tree) {
  if (inquiry == nullptr || inquiry->open().empty()) return {};
  // An approver is not asked about a change that a limit refuses.
  TRY(CheckLimits(change, tree));
  return inquiry->Check(change);
}

Status Judge::CheckLimits(Change& change, Tree& tree) {
  if (meters_.empty()) return {};
  return meters_.Judge(change, tree, base_);
}

bool Judge::HasFractions() const {
  return policy_ &&
         std::ranges::any_of(policy_->limits(), [](const policy::Limit& limit) {
           return !limit.at_commit && limit.fraction.has_value();
         });
}

void Judge::ForgetBase() {
  links_.Clear();
  meters_.ForgetBase();
}

Status Ask(Approver* approver, const Caller& caller, const Inquiry& inquiry) {
  if (approver == nullptr) {
    const Question& first = inquiry.open().front();
    return Veto(*first.rule, first.names.front().path);
  }
  return approver->Decide(caller, inquiry.open());
}

}  // namespace txfs

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/tree/plan.h"
#include "fs/tree/tree.h"
#include "fs/veto/base_links.h"
#include "fs/veto/inquiry.h"
#include "journal/change.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs {

/// `type` as rules name it.
[[nodiscard]] policy::Type JudgedType(FileType type);

/// Judges every name that one mutating operation touches, before its edits are
/// planned. Stops at the first refusal. Questions go to the plan's inquiry and
/// fail only when the plan is accepted, so that no approver sees an operation
/// that is refused anyway. Requires the tree lock.
class PolicyCheck {
 public:
  /// A null `policy` allows everything. `plan` has the caller and the
  /// operation; its change records the policy and the rule that noted it.
  PolicyCheck(const std::shared_ptr<const policy::Policy>& policy,
              const Tree& tree, const BaseDirectory& base, BaseLinks& links,
              Plan& plan)
      : policy_(policy),
        tree_(tree),
        base_(base),
        links_(links),
        user_(plan.user()),
        inquiry_(plan.inquiry()),
        change_(plan.change()) {
    if (policy != nullptr) change_.policy = policy->hash();
  }

  /// Judges a new name of the object of `record`.
  Status Make(const Inode& directory, std::string_view name,
              const InodeRecord& record);
  /// Judges the removal of a name.
  Status Remove(const Inode& directory, std::string_view name,
                const Inode& child);
  /// Judges a change of content or attributes, for all names of `inode`.
  /// `size`: of the content afterwards, if it does not have new bytes.
  Status Alter(policy::Effect effect, const Inode& inode,
               std::optional<uint64_t> size = {});
  /// Judges reading, for all names of `inode` and the one in the base.
  Status Read(const Inode& inode);
  /// Judges a move of `child` and of all names below it.
  Status Move(const Inode& from, std::string_view name, const Inode& to,
              std::string_view new_name, const Inode& child);

 private:
  [[nodiscard]] bool Cares(policy::Effect effect) const;
  /// The object of a name.
  struct Thing {
    policy::Layer layer;
    policy::Type type;
    bool moved = false;  ///< a rename moves its name
  };
  static Thing ThingOf(const Attr& attr, bool has_base);
  static Thing ThingOf(const Inode& inode);

  /// `other_end` as in policy::Event.
  Status Judge(policy::Effect effect, std::string_view path, Thing thing,
               std::string_view other_end = {});
  /// Adds the unanswered questions about `event` to the inquiry.
  Status Inquire(const policy::Event& event, const policy::Rule& decisive);
  Status AlterNames(policy::Effect effect, const Inode& inode, Thing thing,
                    const std::optional<std::string>& but);
  /// All paths of `inode`, without duplicates.
  Result<std::vector<std::string>> PathsOf(const Inode& inode);
  /// Its path in the base, and those hard links there that rules match.
  Result<std::vector<std::string>> BasePathsOf(const BaseOrigin& base);
  /// Adds hard links in the base that the kernel never looked up.
  Status AddUnseen(const BaseOrigin& base, std::vector<std::string>& paths);
  Status JudgeBelow(const Inode& directory, const std::string& old_path,
                    const std::string& new_path);

  const std::shared_ptr<const policy::Policy>& policy_;
  const Tree& tree_;
  const BaseDirectory& base_;
  BaseLinks& links_;
  const std::optional<uint32_t> user_;
  Inquiry* const inquiry_;
  Change& change_;
  /// Action of the rule in the change, the strongest so far.
  policy::Action noted_ = policy::Action::kAllow;
};

}  // namespace txfs

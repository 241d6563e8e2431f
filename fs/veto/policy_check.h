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

/// Judges one mutating operation before it is planned: every name that it
/// touches. Requires the tree lock. The first refusal stands, and nothing
/// afterwards is looked at. Questions go to the plan's inquiry, and fail
/// nothing before the plan is to be accepted, so that nobody is asked about
/// what is refused.
class PolicyCheck {
 public:
  /// `policy` may be null: all is allowed. `plan` says who does what; its
  /// change learns which policy judged it, and the rule that had it noted.
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

  /// The name is to be made, and to lead to something of `type`.
  Status Make(const Inode& directory, std::string_view name, FileType type);
  /// What the name leads to goes, by that name.
  Status Remove(const Inode& directory, std::string_view name,
                const Inode& child);
  /// Its content or its attributes change, under all its names.
  Status Alter(policy::Effect effect, const Inode& inode);
  /// `child` goes to another place, with all that is below it.
  Status Move(const Inode& from, std::string_view name, const Inode& to,
              std::string_view new_name, const Inode& child);

 private:
  [[nodiscard]] bool Cares(policy::Effect effect) const;
  /// What a name leads to.
  struct Thing {
    policy::Layer layer;
    policy::Type type;
    bool moved = false;  ///< its name goes elsewhere by a rename
  };
  static Thing ThingOf(const Inode& inode);

  /// `other_end` as in policy::Event.
  Status Judge(policy::Effect effect, std::string_view path, Thing thing,
               std::string_view other_end = {});
  /// Notes what of the rules about `event` is not answered yet.
  Status Inquire(const policy::Event& event, const policy::Rule& decisive);
  Status AlterNames(policy::Effect effect, const Inode& inode,
                    const std::optional<std::string>& but);
  /// Every path of `inode`, once.
  Result<std::vector<std::string>> PathsOf(const Inode& inode);
  /// The names that the base has for an object and nobody has looked up.
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
  /// Of the rule that the change has, the strongest one.
  policy::Action noted_ = policy::Action::kAllow;
};

}  // namespace txfs

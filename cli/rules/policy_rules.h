#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/locate/context.h"
#include "cli/locate/reach.h"
#include "cli/protocol/client.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs::cli {

using Rules = std::shared_ptr<const policy::Policy>;

enum class WithBuiltin { kYes, kNo };
/// The policy of one file, alone or after the built-in rules; never null.
Result<Rules> RulesOfFile(const Context& context, const std::string& file,
                          WithBuiltin builtin = WithBuiltin::kNo);

/// The policy of the next mount of `workspace` without policy options. Never
/// null. `examples`: with those of the built-in rules.
Result<Rules> RulesOfNextMount(const RealWorkspace& workspace,
                               bool examples = false);

/// Where the policy in force at a command's directory is.
struct RulesPlace {
  std::optional<Client> daemon;  ///< of the mount, if one serves it
  RealWorkspace next;            ///< else the workspace of the next mount
};
Result<RulesPlace> FindRules(const Context& context);

/// The policy in force at the command's directory: that of the mount's daemon;
/// else that of the next mount of the workspace, or of the directory if it is
/// not in a workspace. Never null.
Result<Rules> RulesInForce(const Context& context, bool examples = false);

/// As RulesInForce, for commands: a directory that is no workspace and has the
/// user's configuration in it, such as a home, has the rules of machine and
/// user. `place`: from FindRules.
Result<Rules> RulesForCommands(const Context& context,
                               Result<RulesPlace> place);
Result<Rules> RulesForCommands(const Context& context);

/// Whether `context` names or lies in a workspace with a record, or lies in a
/// mount.
[[nodiscard]] bool IsInWorkspace(const Context& context);

/// "19 rules and 1 limit"; for null, none.
[[nodiscard]] std::string CountRules(const policy::Policy* rules);

/// The policy of `file` if it is given, else the one in force, with examples.
Result<Rules> RulesFor(const Context& context,
                       const std::optional<std::string>& file);

}  // namespace txfs::cli

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cli/locate/context.h"
#include "cli/locate/reach.h"
#include "journal/support/result.h"
#include "policy/policy.h"

namespace txfs::cli {

using Rules = std::shared_ptr<const policy::Policy>;

enum class WithBuiltin { kYes, kNo };
/// The rules of one file, alone or after the built-in ones; never null.
Result<Rules> RulesOfFile(const Context& context, const std::string& file,
                          WithBuiltin builtin = WithBuiltin::kNo);

/// Those that the next mount of `workspace` would find without being told of
/// others. Never null.
Result<Rules> RulesOfNextMount(const RealWorkspace& workspace);

/// Those in force where the command is: of the mount, as its daemon has them;
/// else as the next mount of the workspace, or of the directory if that is none
/// yet, would find them. Never null.
Result<Rules> RulesInForce(const Context& context);

/// Whether `context` is about a workspace that has a store, or a mount.
[[nodiscard]] bool IsInWorkspace(const Context& context);

/// "19 rules and 1 limit"; of null, none.
[[nodiscard]] std::string CountRules(const policy::Policy* rules);

/// Of `file` if there is one, else those in force.
Result<Rules> RulesFor(const Context& context,
                       const std::optional<std::string>& file);

}  // namespace txfs::cli

#pragma once

#include <string>

#include "journal/support/result.h"
#include "policy/exec_rule.h"
#include "policy/section.h"

namespace txfs::policy {

/// Reads an [[exec]] rule but for id and action, and checks those of its
/// examples that SimpleWords can read. Errors as Load.
Result<ExecRule> ReadExecRule(const Section& section, const std::string& file);

/// The command that an example stands for, if SimpleWords can read it. None
/// also for a rule about what only the parser of shell text finds out.
[[nodiscard]] std::optional<Command> SimpleCommand(const ExecExample& example,
                                                   const ExecRule& rule);

}  // namespace txfs::policy

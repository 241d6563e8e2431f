#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cli/output/json.h"
#include "cli/shell/judge.h"
#include "journal/support/result.h"
#include "policy/explain.h"

namespace txfs::cli {

// The request "judge" (docs/control.md): the daemon judges by the rules that it
// has compiled, which takes a command several milliseconds.

/// The verdict of rules on a command or on an operation, without its parts.
struct RuleVerdict {
  policy::Action action = policy::Action::kAllow;
  policy::Class consequence = policy::Class::kUnknown;  ///< of a command
  bool reads_only = false;                              ///< of a command
  /// Of the rule that decides; "" without one.
  std::string rule, reason, suggest;
};

[[nodiscard]] RuleVerdict Summarize(const CommandVerdict& verdict);
[[nodiscard]] RuleVerdict Summarize(const policy::Explanation& explanation);

/// The request for the verdict on a command that the caller has taken apart.
Json JudgeRequest(const ShellReading& reading,
                  const policy::Surroundings& surroundings,
                  policy::Confinement confinement);
/// The request for the verdict on an operation. The layer is not sent: the
/// daemon finds it out.
Json JudgeRequest(const policy::Proposal& proposal);

/// What `policy explain` prints of a command.
enum class ExplainForm { kText, kJson };
[[nodiscard]] std::string FormatVerdict(const CommandVerdict& verdict,
                                        ExplainForm form);
/// `request`, from JudgeRequest about a command, for FormatVerdict instead.
Json ExplainRequest(Json request, ExplainForm form);

/// The text that `request`, from ExplainRequest, asks for; none: it is another
/// one.
std::optional<std::string> AnswerExplain(const Json& request,
                                         const policy::Policy& rules);

/// The verdict of `rules` on `request`. `is_in_base`: whether the base has an
/// object at a path relative to the workspace. EINVAL if the request is about
/// neither a command nor an operation.
Result<RuleVerdict> AnswerJudge(
    const Json& request, const policy::Policy& rules,
    const std::function<bool(const std::string&)>& is_in_base);

Json ToJson(const RuleVerdict& verdict);
RuleVerdict RuleVerdictFromJson(const Json& json);

}  // namespace txfs::cli

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/locate/context.h"
#include "cli/protocol/judgement.h"
#include "cli/run/limits.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// What becomes of the changes of a run.
enum class Settle : uint8_t { kCommit, kKeep, kDiscard };

/// A setting of a configuration file that holds for a run.
struct TakenSetting {
  std::string key;
  std::string from;  ///< "FILE:LINE"
};

struct RunArguments {
  std::vector<std::string> command;
  std::optional<std::string> name;      ///< of the transaction
  std::optional<std::string> profile;   ///< its name; "none": none
  std::vector<std::string> validators;  ///< for sh -c
  Settle on_success = Settle::kCommit;
  Settle on_failure = Settle::kDiscard;
  uint64_t timeout_ms = 0;  ///< 0: none
  LimitValues limits;
  std::string home = "cow";  ///< or "ro", "rw"
  bool has_network = true;
  /// Without that: names of hosts (ParseHostName) to reach; empty: none.
  std::vector<std::string> network;
  std::vector<std::string> rw, hide, show, env;  ///< as given
  /// Those of `hide` that are hidden whatever `show` says.
  std::vector<std::string> hide_always;
  bool may_nest = false;
  bool no_sandbox = false;
  std::string message;
  bool strict = false;    ///< a denied operation is a failure
  bool unjudged = false;  ///< the rules for commands are not asked
  /// A command that only reads, by the rules, has no transaction.
  bool direct = false;
  std::string json;  ///< file for the report; "": none
  std::vector<TakenSetting> configuration;
  /// What was asked for, and is not enforced with no_sandbox; options have no
  /// `from`.
  std::vector<TakenSetting> unenforced;
};

/// The exit code of a command that the rules refuse.
inline constexpr int kRefusedCode = 4;

/// The verdict of the rules for commands on the command of a run; by default
/// that of no rule.
Result<RuleVerdict> JudgeRun(const Context& context,
                             const RunArguments& arguments);
/// Whether `verdict` keeps a command from running: nobody is there to be asked.
[[nodiscard]] bool IsRefused(const RuleVerdict& verdict);
/// "REASON (rule ID)".
[[nodiscard]] std::string WhyRefused(const RuleVerdict& verdict);
/// Says why, and what to do instead.
void SayRefused(const RunArguments& arguments, const RuleVerdict& verdict);

/// Runs a command as one transaction (docs/run.md). Returns the exit code; an
/// error is one of txfs.
Result<int> RunInTransaction(const Context& context,
                             const RunArguments& arguments);

}  // namespace txfs::cli

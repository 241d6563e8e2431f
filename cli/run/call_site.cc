#include "cli/run/call_site.h"

#include <fcntl.h>

#include <utility>

#include "cli/locate/reach_daemon.h"
#include "cli/output/errors.h"
#include "cli/rules/policy_sources.h"
#include "cli/run/nested.h"
#include "policy/sources.h"

namespace txfs::cli {
namespace {

/// The host waits for the hook 30 s at most, and a daemon that hangs has then
/// been waited for kReachMs before.
constexpr int kPatienceMs = 3000;

}  // namespace

CallSite::CallSite(std::string directory)
    : context_{.directory = std::move(directory),
               .store = std::nullopt,
               .transaction = std::nullopt,
               .trailing = {}},
      mount_(FindTxfsMount(context_.directory)),
      in_run_(mount_.has_value() && IsInRun()) {}

Result<CommandStart> CallSite::Start() const {
  return StartOf(context_, in_run_, IsInRun());
}

Result<std::unique_ptr<Connection>> CallSite::Reach() const {
  if (IsInRun()) return ReachRunAround(kPatienceMs);
  return ConnectDaemon(AddressOf(*mount_), kPatienceMs);
}

Client* CallSite::Daemon() {
  if (!has_tried_ && (mount_ || IsInRun())) {
    has_tried_ = true;
    auto connection = Reach();
    if (connection) {
      daemon_ = std::make_unique<Client>(std::move(*connection));
    } else {
      doubt_ = Explained(connection.error());
    }
  }
  return daemon_.get();
}

Result<Rules> CallSite::LoadRules() {
  if (rules_) return rules_;
  // What the mount was given in addition is not known.
  auto rules = mount_ || IsInRun()
                   ? policy::LoadSources(SourcesOfUser(), AT_FDCWD)
                   : RulesForCommands(context_);
  if (!rules) {
    doubt_ = Explained(rules.error());
    rules = policy::LoadSources({.builtin = true, .files = {}}, AT_FDCWD);
  }
  rules_ = TRY(std::move(rules));
  return rules_;
}

Result<RuleVerdict> CallSite::JudgeWords(const std::vector<std::string>& words,
                                         policy::Confinement confinement) {
  CommandStart start = TRY(Start());
  start.confinement = confinement;
  return JudgeParts(ReadCommandWords(words, start.shell), start);
}

Result<RuleVerdict> CallSite::JudgeParts(ShellReading reading,
                                         const CommandStart& start) {
  if (reading.failure) return std::unexpected(*std::move(reading.failure));
  const policy::Surroundings& around = start.shell.surroundings;
  if (Client* daemon = Daemon()) {
    auto verdict =
        daemon->Judge(JudgeRequest(reading, around, start.confinement));
    if (verdict) return verdict;
    doubt_ = Explained(verdict.error());
  }
  const Rules rules = TRY(LoadRules());
  return Summarize(
      Judge(*rules, std::move(reading), around, start.confinement));
}

Result<RuleVerdict> CallSite::JudgeOperation(const policy::Proposal& proposal) {
  if (Client* daemon = Daemon()) {
    auto verdict = daemon->Judge(JudgeRequest(proposal));
    if (verdict) return verdict;
    doubt_ = Explained(verdict.error());
  }
  const Rules rules = TRY(LoadRules());
  return Summarize(policy::Explain(*rules, proposal));
}

}  // namespace txfs::cli

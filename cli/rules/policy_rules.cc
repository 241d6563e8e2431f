#include "cli/rules/policy_rules.h"

#include <fcntl.h>

#include <cerrno>

#include "cli/locate/locate.h"
#include "cli/locate/transactions.h"
#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/rules/policy_sources.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

Rules OrNone(Rules rules) {
  return rules ? std::move(rules) : std::make_shared<const policy::Policy>();
}

/// Whether the workspace has no open transaction, as after a run.
bool HasNoneOpen(const RealWorkspace& workspace) {
  const auto store = OpenStore(workspace);
  const auto open =
      store ? ListServed(**store) : std::unexpected(store.error());
  return open && open->empty();
}

Result<Rules> RulesAt(RulesPlace& place, bool examples) {
  if (!place.daemon) return RulesOfNextMount(place.next, examples);
  const auto texts = TRY(place.daemon->Policy());
  auto rules = TRY(policy::Compile(texts, examples));
  return OrNone(std::move(rules));
}

}  // namespace

bool IsInWorkspace(const Context& context) {
  if (context.store || context.transaction ||
      FindTxfsMount(context.directory)) {
    return true;
  }
  const auto found = FindWorkspace(context.directory);
  // What failed is said by who asks for more.
  return !found || *found;
}

Result<Rules> RulesOfFile(const Context& context, const std::string& file,
                          WithBuiltin builtin) {
  TRY(CheckWay(context.directory, file));
  const policy::Sources sources{
      .builtin = builtin == WithBuiltin::kYes,
      .files = {{.path = ResolvePath(context.directory, file)}}};
  return policy::LoadSources(sources, AT_FDCWD);
}

Result<Rules> RulesOfNextMount(const RealWorkspace& workspace, bool examples) {
  policy::Sources sources = TRY(PolicySources(workspace.path, {}));
  sources.examples = examples;
  auto rules = TRY(policy::LoadSources(sources, workspace.base->get()));
  return OrNone(std::move(rules));
}

Result<RulesPlace> FindRules(const Context& context) {
  if (!IsInWorkspace(context)) {
    auto here = std::make_shared<UniqueFd>(
        TRY(OpenAt(AT_FDCWD, context.directory, O_RDONLY | O_DIRECTORY)));
    return RulesPlace{
        .daemon = std::nullopt,
        .next = {.path = context.directory, .base = std::move(here)}};
  }
  auto located = Locate(context);
  if (!located && !context.transaction) {
    const WorkspacePlace workspace = TRY(LocateWorkspace(context));
    if (HasNoneOpen(workspace.real)) {
      return RulesPlace{.daemon = std::nullopt, .next = workspace.real};
    }
  }
  const Place place = TRY(std::move(located));
  RulesPlace found{.daemon = std::nullopt, .next = place.real};
  if (place.daemon == DaemonState::kRunning) {
    found.daemon = TRY(Connect(place));
  }
  return found;
}

Result<Rules> RulesInForce(const Context& context, bool examples) {
  RulesPlace place = TRY(FindRules(context));
  return RulesAt(place, examples);
}

Result<Rules> RulesForCommands(const Context& context) {
  return RulesForCommands(context, FindRules(context));
}

Result<Rules> RulesForCommands(const Context& context,
                               Result<RulesPlace> place) {
  auto rules = place ? RulesAt(*place, false)
                     : std::unexpected(std::move(place).error());
  if (rules || rules.error().code != EPERM || IsInWorkspace(context)) {
    return rules;
  }
  auto without = TRY(policy::LoadSources(SourcesOfUser(), AT_FDCWD));
  return OrNone(std::move(without));
}

std::string CountRules(const policy::Policy* rules) {
  if (rules == nullptr) return Count(0, "rule");
  const std::string count = Count(rules->rules().size(), "rule");
  const std::string limits = Count(rules->limits().size(), "limit");
  const size_t commands = rules->exec_rules().size();
  if (commands != 0) {
    return count + (rules->limits().empty() ? "" : ", " + limits) + " and " +
           Count(commands, "command rule");
  }
  return rules->limits().empty() ? count : count + " and " + limits;
}

Result<Rules> RulesFor(const Context& context,
                       const std::optional<std::string>& file) {
  return file ? RulesOfFile(context, *file) : RulesInForce(context, true);
}

}  // namespace txfs::cli

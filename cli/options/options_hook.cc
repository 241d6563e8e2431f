#include <memory>

#include "cli/hook/hook.h"
#include "cli/hook/install.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

void AddHookHost(CLI::App& hook, Command& command, const HookHost& host) {
  const std::string name(host.name);
  CLI::App* sub = hook.add_subcommand(
      name, "Answer a call of " + name + " on stdin, in its format");
  sub->callback([&command, &host] {
    command.takes_transaction = false;
    command.run = [&host](const Context&) -> Result<int> {
      return RunHook(host);
    };
  });
}

void AddHookChange(CLI::App& hook, Command& command, const char* name,
                   const char* help, bool removes) {
  CLI::App* sub = hook.add_subcommand(name, help);
  struct Options {
    HookInstallArguments arguments;
    bool user = false, project = false;
  };
  const auto options = std::make_shared<Options>();
  options->arguments.removes = removes;
  std::vector<std::string> names;
  for (const HookHost& host : HookHosts()) names.emplace_back(host.name);
  sub->add_option("HOST", options->arguments.host, "The agent's host")
      ->required()
      ->check(CLI::IsMember(names));
  auto* user = sub->add_flag("--user", options->user,
                             "In the user's configuration (default)");
  sub->add_flag("--project", options->project,
                "In the project in the current directory")
      ->excludes(user);
  sub->add_flag("--dry-run", options->arguments.dry_run,
                "Print the file, and change nothing");
  sub->callback([&command, options] {
    command.takes_transaction = false;
    command.run = [options](const Context& context) {
      if (options->project) options->arguments.scope = HookScope::kProject;
      return RunHookInstall(context, options->arguments);
    };
  });
}

}  // namespace

void AddHookCommands(CLI::App& app, Command& command) {
  CLI::App* hook = app.add_subcommand(
      "hook", "Judge the calls of an agent, for the agent's host");
  hook->require_subcommand(1);
  AddHookChange(*hook, command, "install",
                "Make a host call `txfs hook` before its agent works", false);
  AddHookChange(*hook, command, "uninstall",
                "Take the hook out of a host's configuration", true);
  for (const HookHost& host : HookHosts()) AddHookHost(*hook, command, host);
}

}  // namespace txfs::cli

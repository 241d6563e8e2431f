#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

void AddPolicyCheck(CLI::App& policy, Command& command) {
  CLI::App* sub =
      policy.add_subcommand("check", "Say whether a file is a policy");
  const auto file = std::make_shared<std::string>();
  sub->add_option("FILE", *file, "The file")->required();
  sub->callback([&command, file] {
    command.takes_transaction = false;
    command.run = [file](const Context& context) {
      return RunPolicyCheck(context, *file);
    };
  });
}

void AddPolicyLint(CLI::App& policy, Command& command) {
  CLI::App* sub =
      policy.add_subcommand("lint", "Warn of rules that are hardly meant");
  const auto file = std::make_shared<std::optional<std::string>>();
  sub->add_option("FILE", *file, "A file (default: those in force)");
  sub->callback([&command, file] {
    command.run = [file](const Context& context) {
      return RunPolicyLint(context, *file);
    };
  });
}

void AddPolicyTest(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "test", "Say whether the rules say what is expected of them");
  const auto test = std::make_shared<PolicyTestArguments>();
  sub->add_option("--policy", test->file,
                  "A file of rules (default: those in force)");
  sub->add_option("CASES", test->cases,
                  "JSON lines (default: the examples of the rules)");
  sub->callback([&command, test] {
    command.run = [test](const Context& context) {
      return RunPolicyTest(context, *test);
    };
  });
}

struct PolicyShowOptions {
  std::optional<std::string> directory;
  bool json = false;
};

void AddPolicyShow(CLI::App& policy, Command& command) {
  CLI::App* sub =
      policy.add_subcommand("show", "Show the rules that are in force");
  const auto show = std::make_shared<PolicyShowOptions>();
  sub->add_option("DIR", show->directory, "In the mount or workspace");
  sub->add_flag("--json", show->json, "As JSON");
  sub->callback([&command, show] {
    command.directory = show->directory;
    command.run = [show](const Context& context) {
      return RunPolicyShow(context, show->directory, show->json);
    };
  });
}

void AddPolicyReload(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "reload", "Put the rules in force as they are in their files now");
  const auto directory = std::make_shared<std::optional<std::string>>();
  sub->add_option("DIR", *directory, "Somewhere in the mount");
  sub->callback([&command, directory] {
    command.directory = *directory;
    command.run = [directory](const Context& context) {
      return RunPolicyReload(context, *directory);
    };
  });
}

void AddPolicyExplain(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "explain", "Say what the rules are about an operation on a path");
  const auto explain = std::make_shared<PolicyExplainArguments>();
  sub->add_option("--policy", explain->file,
                  "A file of rules (default: those in force)");
  sub->add_option("--exe", explain->exe, "Path of the program");
  sub->add_option("--type", explain->type,
                  "What is there: file, directory, symlink or other");
  sub->add_flag("--new", explain->is_new,
                "What is there was made in the transaction");
  sub->add_flag("--json", explain->json, "As JSON");
  sub->add_option("OP", explain->op, "As `txfs log` calls it")->required();
  sub->add_option("PATH", explain->path, "In the workspace or mount")
      ->required();
  sub->add_option("NEWPATH", explain->new_path,
                  "The other one of rename, exchange or link");
  sub->callback([&command, explain] {
    command.run = [explain](const Context& context) {
      return RunPolicyExplain(context, *explain);
    };
  });
}

}  // namespace

void AddPolicyCommands(CLI::App& app, Command& command) {
  CLI::App* policy =
      app.add_subcommand("policy", "Look at rules, and exchange them");
  policy->require_subcommand(1);
  AddPolicyCheck(*policy, command);
  AddPolicyLint(*policy, command);
  AddPolicyTest(*policy, command);
  AddPolicyShow(*policy, command);
  AddPolicyReload(*policy, command);
  AddPolicyExplain(*policy, command);
}

}  // namespace txfs::cli

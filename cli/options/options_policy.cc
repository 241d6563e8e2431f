#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

void AddPolicyCheck(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "check", "Check a policy file and the examples in it");
  const auto file = std::make_shared<std::string>();
  sub->add_option("FILE", *file, "Policy file")->required();
  sub->callback([&command, file] {
    command.takes_transaction = false;
    command.run = [file](const Context& context) {
      return RunPolicyCheck(context, *file);
    };
  });
}

void AddPolicyLint(CLI::App& policy, Command& command) {
  CLI::App* sub =
      policy.add_subcommand("lint", "Report rules that are probably mistakes");
  const auto file = std::make_shared<std::optional<std::string>>();
  sub->add_option("FILE", *file, "Policy file (default: the rules in force)");
  sub->callback([&command, file] {
    command.run = [file](const Context& context) {
      return RunPolicyLint(context, *file);
    };
  });
}

void AddPolicyTest(CLI::App& policy, Command& command) {
  CLI::App* sub =
      policy.add_subcommand("test", "Check how the rules judge test cases");
  const auto test = std::make_shared<PolicyTestArguments>();
  sub->add_option("--policy", test->file,
                  "Policy file to use alone (default: the rules in force)")
      ->type_name("FILE");
  sub->add_option(
      "CASES", test->cases,
      "File of test cases, as JSON lines (default: the examples in the rules)");
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
  CLI::App* sub = policy.add_subcommand("show", "Show the rules in force");
  const auto show = std::make_shared<PolicyShowOptions>();
  sub->add_option(
      "DIR", show->directory,
      "Directory in the mount or workspace (default: the current directory)");
  sub->add_flag("--json", show->json, "Print JSON");
  sub->callback([&command, show] {
    command.directory = show->directory;
    command.run = [show](const Context& context) {
      return RunPolicyShow(context, show->directory, show->json);
    };
  });
}

void AddPolicyReload(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "reload", "Read the rule files of a mount again, and enforce them");
  const auto directory = std::make_shared<std::optional<std::string>>();
  sub->add_option("DIR", *directory,
                  "Directory in the mount (default: the current directory)");
  sub->callback([&command, directory] {
    command.directory = *directory;
    command.run = [directory](const Context& context) {
      return RunPolicyReload(context, *directory);
    };
  });
}

/// An operation on a path, or a command after "--": not both.
Result<int> RunExplain(const Context& context,
                       const PolicyExplainArguments& arguments) {
  const bool has_command = !context.trailing.empty();
  if (has_command && arguments.op.empty()) {
    return RunPolicyExplainCommand(context, arguments);
  }
  if (has_command || arguments.path.empty() || arguments.confined) {
    return Fail(ErrorKind::kUsage, 0,
                "explain takes OP and PATH, or a command after --",
                "`txfs policy explain unlink PATH`, or `txfs policy explain -- "
                "'COMMAND'`");
  }
  return RunPolicyExplain(context, arguments);
}

void AddPolicyExplain(CLI::App& policy, Command& command) {
  CLI::App* sub = policy.add_subcommand(
      "explain",
      "Explain how the rules judge an operation on a path, or a command");
  const auto explain = std::make_shared<PolicyExplainArguments>();
  sub->add_option("--policy", explain->file,
                  "Policy file to use alone (default: the rules in force)")
      ->type_name("FILE");
  sub->add_option("--exe", explain->exe,
                  "Path of the program that runs the operation")
      ->type_name("PROGRAM");
  sub->add_option("--type", explain->type,
                  "Judge PATH as an object of this type: file, directory, "
                  "symlink or other (default: as it is)")
      ->type_name("TYPE");
  sub->add_flag("--new", explain->is_new,
                "Judge PATH as an object that the transaction created");
  sub->add_flag("--empty", explain->is_empty,
                "Judge PATH as a new file that has no content afterwards");
  sub->add_flag("--json", explain->json, "Print JSON");
  sub->add_flag("--confined", explain->confined,
                "Judge the command as one that runs in `txfs run`");
  sub->add_option("OP", explain->op, "Operation, named as in `txfs log`");
  sub->add_option("PATH", explain->path, "Path in the workspace or mount");
  sub->add_option("NEWPATH", explain->new_path,
                  "Second path of rename, exchange or link");
  sub->footer(
      "`txfs policy explain [--confined] -- CMD...` explains a command: shell "
      "text if it is one argument, else a program and its arguments.");
  sub->callback([&command, explain] {
    command.takes_trailing = true;
    command.run = [explain](const Context& context) {
      return RunExplain(context, *explain);
    };
  });
}

}  // namespace

void AddPolicyCommands(CLI::App& app, Command& command) {
  CLI::App* policy = app.add_subcommand(
      "policy", "Inspect, test and reload the rules of the policy");
  policy->require_subcommand(1);
  AddPolicyCheck(*policy, command);
  AddPolicyLint(*policy, command);
  AddPolicyTest(*policy, command);
  AddPolicyShow(*policy, command);
  AddPolicyReload(*policy, command);
  AddPolicyExplain(*policy, command);
}

}  // namespace txfs::cli

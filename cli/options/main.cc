#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <vector>

#include "cli/commands/mount_helper.h"
#include "cli/hook/hook.h"
#include "cli/locate/trust.h"
#include "cli/options/options.h"
#include "cli/output/errors.h"
#include "cli/run/nested.h"
#include "fs/host/mount_table.h"
#include "journal/support/memory.h"

namespace txfs::cli {
namespace {

void SetUp(CLI::App& app, GlobalOptions& options, Command& command) {
  app.name("txfs");
  app.set_version_flag("--version", "txfs " TXFS_VERSION);
  app.require_subcommand(0, 1);
  app.fallthrough();
  // The names of arguments say enough; subcommands inherit the formatter.
  app.get_formatter()->label("TEXT", "");
  app.get_formatter()->label("REQUIRED", "");
  AddGlobalOptions(app, options);
  AddRunCommands(app, command);
  AddMountCommands(app, command);
  AddStoreCommands(app, command);
  AddTransactionCommands(app, command);
  AddHistoryCommands(app, command);
  AddPolicyCommands(app, command);
  AddHookCommands(app, command);
  // Last, since subcommands inherit a footer.
  app.footer(
      "`txfs COMMAND --help` lists the options of a command; txfs(1) describes "
      "them.");
}

/// CLI11 does not get the arguments after the first "--": it would take them
/// for positional arguments of the command that the user left out.
std::vector<std::string> CutTrailing(std::vector<std::string>& arguments) {
  const auto dashes = std::ranges::find(arguments, "--");
  if (dashes == arguments.end()) return {};
  std::vector<std::string> trailing(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
  return trailing;
}

/// CLI11's message as one line without a full stop.
std::string OneLine(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  while (text.ends_with(' ') || text.ends_with('.')) text.pop_back();
  return text;
}

Error UsageError(const std::string& message) {
  return {.code = 0,
          .message = OneLine(message),
          .hint =
              "`txfs --help` and `txfs COMMAND --help` list the commands and "
              "options",
          .kind = ErrorKind::kUsage};
}

/// `text`: CLI11's list of the arguments that no option takes.
Error UnexpectedArgument(const std::string& text) {
  const size_t colon = text.find(": ");
  const std::string what =
      colon == std::string::npos ? text : text.substr(colon + 2);
  return UsageError(what.starts_with('-') ? "unknown option " + what
                                          : "unexpected argument " + what);
}

/// `all`: the whole command line.
Result<int> RunParsed(const GlobalOptions& options, const Command& command,
                      std::vector<std::string> trailing,
                      const std::vector<std::string>& all) {
  if (!command.run) return std::unexpected(UsageError("no command is given"));
  if (!trailing.empty() && !command.takes_trailing) {
    return std::unexpected(
        UsageError("this command takes no arguments after --"));
  }
  if (options.transaction && !command.takes_transaction) {
    return std::unexpected(
        UsageError("this command takes no -t (`txfs mount` takes --name)"));
  }
  if (options.as_owner) {
    const std::string target = TRY(TargetOf(options, command));
    TRY(ActAsOwner(target, all));
  }
  Context context = TRY(MakeContext(options));
  context.trailing = std::move(trailing);
  return command.run(context);
}

/// Refuses options with an empty value: mostly a script has an unset variable
/// there, and the command would run without the option.
Status CheckValues(const CLI::App& app) {
  constexpr std::string_view kMayBeEmpty = "--message";
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (option->get_positional() || name == kMayBeEmpty) continue;
    const auto values = option->results();
    if (std::ranges::find(values, "") == values.end()) continue;
    return std::unexpected(UsageError(name + " has an empty value"));
  }
  for (const CLI::App* sub : app.get_subcommands()) TRY(CheckValues(*sub));
  return {};
}

/// `error` of a command in a run, with what works there.
Error InRun(Error error) {
  error.hint =
      "this is in `txfs run`, where only `txfs run`, `txfs policy` and `txfs "
      "hook` work: use txfs outside";
  return error;
}

Result<int> RunTxfs(const std::vector<std::string>& all) {
  std::vector<std::string> arguments(all.begin() + 1, all.end());
  std::vector<std::string> trailing = CutTrailing(arguments);
  GlobalOptions options;
  Command command;
  CLI::App app("txfs: work on a directory in a transaction");
  SetUp(app, options, command);
  // CLI11 takes the arguments from the back.
  std::ranges::reverse(arguments);
  const auto refuse = [&](const Error& error) -> Result<int> {
    // Its other exit codes are the command's.
    if (app.got_subcommand("run")) {
      static_cast<void>(Report(error));
      return kRunFailed;
    }
    return std::unexpected(error);
  };
  try {
    app.parse(arguments);
  } catch (const CLI::Success& answer) {
    return app.exit(answer);
  } catch (const CLI::ExtrasError& error) {
    return refuse(UnexpectedArgument(error.what()));
  } catch (const CLI::ParseError& error) {
    return refuse(UsageError(error.what()));
  }
  if (const Status checked = CheckValues(app); !checked) {
    return refuse(checked.error());
  }
  auto code = RunParsed(options, command, std::move(trailing), all);
  if (code) return code;
  const bool is_outside =
      !IsInRun() || code.error().kind == ErrorKind::kUsage ||
      app.got_subcommand("run") || app.got_subcommand("policy");
  return refuse(is_outside ? code.error() : InRun(code.error()));
}

/// Opens /dev/null at each standard descriptor that the caller closed, so that
/// no file or socket of txfs gets its number. Reads and writes there still
/// fail: /dev/null is open for the other direction.
void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // open(2) returns the lowest free descriptor, which is `fd`.
    std::ignore = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// `all`: the program's name first.
Result<int> Run(const std::vector<std::string>& all) {
  const std::string& program = all.front();
  if (program.substr(program.rfind('/') + 1) == kMountHelper) {
    return RunMountHelper(all);
  }
  if (const HookHost* host = HookIn(all)) return RunHook(*host);
  return RunTxfs(all);
}

}  // namespace
}  // namespace txfs::cli

int main(int argc, char** argv) {
  txfs::cli::HoldStandardDescriptors();
  txfs::DeepenStacks();
  txfs::KeepMountTable(true);
  std::vector<std::string> arguments(argv, argv + argc);
  if (arguments.empty()) arguments.emplace_back("txfs");
  const auto exit_code = txfs::cli::Run(arguments);
  return exit_code ? *exit_code : txfs::cli::Report(exit_code.error());
}

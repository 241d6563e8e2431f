#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/diff/diff_print.h"
#include "cli/locate/context.h"
#include "cli/mount/mount_arguments.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// The command that the command line names. CLI11 calls the callback of the
/// command after it has stored the options, and the callback fills this in.
struct Command {
  /// Empty: the command line names no command.
  std::function<Result<int>(const Context&)> run;
  /// The workspace, or the directory in a mount, that an argument names.
  std::optional<std::string> directory;
  bool takes_trailing = false;    ///< arguments after "--"
  bool takes_transaction = true;  ///< -t
};

/// Each function adds the commands of one group, in the order of --help.
/// The arguments of a command are shared: CLI11 copies the callback that holds
/// them, and `Command::run` reads them after CLI11 has stored the options.
void AddRunCommands(CLI::App& app, Command& command);
void AddMountCommands(CLI::App& app, Command& command);
void AddStoreCommands(CLI::App& app, Command& command);
void AddTransactionCommands(CLI::App& app, Command& command);
void AddHistoryCommands(CLI::App& app, Command& command);
void AddPolicyCommands(CLI::App& app, Command& command);
void AddHookCommands(CLI::App& app, Command& command);

/// The exit code of `txfs run` when txfs itself fails.
inline constexpr int kRunFailed = 125;

/// Options that stand before or after every command.
struct GlobalOptions {
  std::vector<std::string> directories;  ///< -C, each relative to the last
  std::optional<std::string> store, transaction;
  bool as_owner = false;
};
void AddGlobalOptions(CLI::App& app, GlobalOptions& options);

/// The context without the arguments after "--".
Result<Context> MakeContext(const GlobalOptions& options);

/// The directory of the workspace or mount that --as-owner looks up. The path
/// is only joined: the process resolves it after it has become the owner.
Result<std::string> TargetOf(const GlobalOptions& options,
                             const Command& command);

/// --keep-commits and --keep-bytes.
void AddKeep(CLI::App& sub, KeepArguments& keep);

/// The formats in which a command prints a diff.
void AddDiffStyle(CLI::App& sub, DiffStyle& style, bool& json);

/// A command whose only option is --json.
void AddReport(CLI::App& app, Command& command, const char* name,
               const char* help, Result<int> (*run)(const Context&, bool),
               bool takes_transaction);

/// `paths`, and the arguments after "--".
std::vector<std::string> WithTrailing(std::vector<std::string> paths,
                                      const Context& context);

}  // namespace txfs::cli

#include <cstdio>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

void AddVersion(CLI::App& app, Command& command) {
  app.add_subcommand("version", "Print the version")->callback([&command] {
    command.takes_transaction = false;
    command.run = [](const Context&) -> Result<int> {
      std::puts("txfs " TXFS_VERSION);
      return 0;
    };
  });
}

}  // namespace

void AddStoreCommands(CLI::App& app, Command& command) {
  AddReport(app, command, "status", "Show the workspace and its transaction",
            RunStatus, true);
  AddReport(app, command, "list",
            "List the open and the ended transactions of the workspace",
            RunList, false);
  AddReport(app, command, "fsck",
            "Check the store for damage, and change nothing", RunFsck, false);
  AddVersion(app, command);
}

}  // namespace txfs::cli

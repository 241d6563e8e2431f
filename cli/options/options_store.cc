#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

struct DoctorOptions {
  std::optional<std::string> workspace;
  bool json = false;
};

void AddDoctor(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "doctor", "Try whether `txfs run` works here, and say what is missing");
  const auto doctor = std::make_shared<DoctorOptions>();
  sub->add_option("WORKSPACE", doctor->workspace,
                  "Workspace (default: the current directory)");
  sub->add_flag("--json", doctor->json, "Print JSON");
  sub->callback([&command, doctor] {
    command.takes_transaction = false;
    command.directory = doctor->workspace;
    command.run = [doctor](const Context& context) {
      return RunDoctor(context, doctor->workspace, doctor->json);
    };
  });
}

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
  AddDoctor(app, command);
  AddVersion(app, command);
}

}  // namespace txfs::cli

#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

struct UndoOptions {
  std::optional<std::string> transaction;
  bool json = false;
};

void AddUndo(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("undo", "Revert a commit in the workspace");
  const auto undo = std::make_shared<UndoOptions>();
  sub->add_option("TXN", undo->transaction,
                  "Transaction: its name or the beginning of its id (default: "
                  "the newest commit that can be undone)");
  sub->add_flag("--json", undo->json, "Print the outcome as JSON");
  sub->callback([&command, undo] {
    command.run = [undo](const Context& context) {
      return RunUndo(context, undo->transaction, undo->json);
    };
  });
}

void AddShow(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("show", "Show a transaction and its changes");
  const auto show = std::make_shared<ShowArguments>();
  sub->add_option("TXN", show->transaction,
                  "Transaction: its name or the beginning of its id; "
                  "required, here or with -t");
  AddDiffStyle(*sub, show->style, show->json);
  sub->add_flag("--no-pager", show->no_pager, "Print without a pager");
  sub->callback([&command, show] {
    command.run = [show](const Context& context) {
      return RunShow(context, *show);
    };
  });
}

struct GcOptions {
  KeepArguments keep;
  bool json = false;
  bool gone = false;
};

void AddGc(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand("gc", "Free the undo data of old commits");
  const auto gc = std::make_shared<GcOptions>();
  AddKeep(*sub, gc->keep);
  sub->add_flag("--json", gc->json, "Print the outcome as JSON");
  sub->add_flag(
      "--gone", gc->gone,
      "Instead, delete the stores of workspaces that no longer exist");
  sub->callback([&command, gc] {
    command.takes_transaction = false;
    command.run = [gc](const Context& context) {
      return gc->gone ? RunGcGone(gc->json)
                      : RunGc(context, gc->keep, gc->json);
    };
  });
}

}  // namespace

void AddHistoryCommands(CLI::App& app, Command& command) {
  AddUndo(app, command);
  AddShow(app, command);
  AddGc(app, command);
}

}  // namespace txfs::cli

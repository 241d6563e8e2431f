#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"

namespace txfs::cli {
namespace {

void AddDiff(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "diff", "Show what the transaction changes, as a git patch");
  const auto diff = std::make_shared<DiffArguments>();
  sub->add_option("PATH", diff->paths, "Only these and what is below them");
  AddDiffStyle(*sub, diff->style, diff->json);
  sub->add_flag("--no-pager", diff->no_pager, "Print at once");
  sub->add_option("--since", diff->since,
                  "Only what changed since a savepoint");
  sub->callback([&command, diff] {
    command.takes_trailing = true;
    command.run = [diff](const Context& context) {
      diff->paths = WithTrailing(diff->paths, context);
      return RunDiff(context, *diff);
    };
  });
}

struct LogOptions {
  LogArguments arguments;
  std::string path, op;  ///< empty: all
};

std::optional<std::string> IfGiven(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void AddLog(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("log", "Show every operation of the transaction");
  const auto log = std::make_shared<LogOptions>();
  LogArguments& arguments = log->arguments;
  sub->add_flag("--json", arguments.json, "JSON lines");
  sub->add_option("--path", log->path, "Only at or below this path");
  sub->add_option("--op", log->op, "Only this operation");
  sub->add_option("-n", arguments.last, "Only the last so many")
      ->check(CLI::Range(uint64_t{1}, uint64_t{UINT32_MAX}));
  sub->add_flag("--denied", arguments.denied, "Only what a policy refused");
  sub->add_flag("--follow,-f", arguments.follow, "Go on until interrupted");
  sub->callback([&command, log] {
    command.run = [log](const Context& context) {
      log->arguments.path = IfGiven(log->path);
      log->arguments.op = IfGiven(log->op);
      return RunLog(context, log->arguments);
    };
  });
}

struct WhyOptions {
  std::vector<std::string> paths;
  bool json = false;
};

void AddWhy(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("why", "Show what the policy refused about a path");
  const auto why = std::make_shared<WhyOptions>();
  sub->add_option("PATH", why->paths, "It, and what is below it");
  sub->add_flag("--json", why->json, "As JSON");
  sub->callback([&command, why] {
    command.takes_trailing = true;
    command.run = [why](const Context& context) -> Result<int> {
      const auto paths = WithTrailing(why->paths, context);
      if (paths.size() == 1) return RunWhy(context, paths[0], why->json);
      return Fail(ErrorKind::kUsage, 0, "why takes one path",
                  "name what could not be changed: txfs why PATH");
    };
  });
}

/// `yes`: the answer.
void AddAnswer(CLI::App& app, Command& command, const char* name, bool yes,
               const char* help) {
  CLI::App* sub = app.add_subcommand(name, help);
  const auto ids = std::make_shared<std::vector<std::string>>();
  sub->add_option("ID", *ids, "Its number, as pending shows it")->required();
  sub->callback([&command, ids, yes] {
    command.run = [ids, yes](const Context& context) {
      return RunAnswer(context, *ids, yes);
    };
  });
}

struct SavepointOptions {
  std::string name;
  bool json = false;
};

void AddSavepoint(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "savepoint", "Mark this moment of the transaction, to go back to");
  const auto savepoint = std::make_shared<SavepointOptions>();
  sub->add_option("NAME", savepoint->name, "Its name (default: sp1, ...)");
  sub->add_flag("--json", savepoint->json, "The savepoint as JSON");
  sub->callback([&command, savepoint] {
    command.run = [savepoint](const Context& context) {
      return RunSavepoint(context, savepoint->name, savepoint->json);
    };
  });
}

void AddRollback(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("rollback", "Take back everything since a savepoint");
  const auto savepoint = std::make_shared<SavepointOptions>();
  sub->add_option("NAME", savepoint->name,
                  "Its name (default: the newest one)");
  sub->add_flag("--json", savepoint->json, "The outcome as JSON");
  sub->callback([&command, savepoint] {
    command.run = [savepoint](const Context& context) {
      return RunRollback(context, savepoint->name, savepoint->json);
    };
  });
}

void AddCommit(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "commit", "Apply the transaction to the workspace and begin the next");
  const auto commit = std::make_shared<CommitArguments>();
  sub->add_option("PATH", commit->paths,
                  "Only these, what is below them and what they need; the "
                  "transaction goes on with the rest");
  sub->add_option("-m,--message", commit->message, "Recorded for list");
  sub->add_option("--on-conflict", commit->on_conflict,
                  "What counts where both sides changed: fail, mine, theirs "
                  "or merge")
      ->check(CLI::IsMember({"fail", "mine", "theirs", "merge"}));
  sub->add_flag("--markers", commit->markers,
                "With merge: put conflict markers where it is not clean");
  sub->add_option("--accept", commit->accepted,
                  "The id of a limit that this commit may exceed; more than "
                  "once: of several")
      ->allow_extra_args(false);
  sub->add_flag("--dry-run", commit->dry_run,
                "Say what would be done, touch nothing");
  sub->add_flag("--json", commit->json, "The outcome as JSON");
  sub->callback([&command, commit] {
    command.takes_trailing = true;
    command.run = [commit](const Context& context) {
      commit->paths = WithTrailing(commit->paths, context);
      return RunCommit(context, *commit);
    };
  });
}

struct DiscardOptions {
  std::vector<std::string> paths;
  bool json = false;
};

void AddDiscard(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "discard", "Throw the transaction away and begin the next");
  const auto discard = std::make_shared<DiscardOptions>();
  sub->add_option("PATH", discard->paths,
                  "Only these and what is below them; the transaction goes on "
                  "with the rest");
  sub->add_flag("--json", discard->json, "The outcome as JSON");
  sub->callback([&command, discard] {
    command.takes_trailing = true;
    command.run = [discard](const Context& context) {
      return RunDiscard(context, WithTrailing(discard->paths, context),
                        discard->json);
    };
  });
}

}  // namespace

void AddTransactionCommands(CLI::App& app, Command& command) {
  AddDiff(app, command);
  AddLog(app, command);
  AddWhy(app, command);
  AddReport(app, command, "pending",
            "Show the operations that wait for somebody's approval", RunPending,
            true);
  AddAnswer(app, command, "approve", true,
            "Let an operation that waits be done");
  AddAnswer(app, command, "deny", false, "Refuse an operation that waits");
  AddSavepoint(app, command);
  AddRollback(app, command);
  AddCommit(app, command);
  AddDiscard(app, command);
}

}  // namespace txfs::cli

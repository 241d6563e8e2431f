#include <memory>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

void AddDiff(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "diff", "Show the changes of the transaction as a git patch");
  const auto diff = std::make_shared<DiffArguments>();
  sub->add_option("PATH", diff->paths,
                  "Show only changes at or below these paths");
  AddDiffStyle(*sub, diff->style, diff->json);
  sub->add_flag("--no-pager", diff->no_pager, "Print without a pager");
  sub->add_option("--since", diff->since,
                  "Show only changes since this savepoint")
      ->type_name("SAVEPOINT");
  sub->add_option("--call", diff->call, "Show only the changes of this call")
      ->type_name("ID");
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
  bool calls = false;
};

std::optional<std::string> IfGiven(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

void AddLog(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("log", "Show the operations of the transaction");
  const auto log = std::make_shared<LogOptions>();
  LogArguments& arguments = log->arguments;
  sub->add_flag("--json", arguments.json, "Print JSON lines");
  sub->add_option("--path", log->path,
                  "Show only operations at or below this path")
      ->type_name("PATH");
  sub->add_option("--op", log->op,
                  "Show only operations of this name, such as create")
      ->type_name("OP");
  sub->add_option("-n", arguments.last, "Show only the last N operations")
      ->type_name("N")
      ->check(CLI::Range(uint64_t{1}, uint64_t{UINT32_MAX}).description(""));
  sub->add_flag("--denied", arguments.denied,
                "Show only operations that the policy refused");
  sub->add_flag("--follow,-f", arguments.follow,
                "Continue with new operations until interrupted");
  sub->add_flag("--calls", log->calls,
                "List the tool calls of agents instead of operations")
      ->excludes("--path", "--op", "-n", "--denied", "--follow");
  sub->callback([&command, log] {
    command.run = [log](const Context& context) {
      if (log->calls) return RunCalls(context, log->arguments.json);
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
  CLI::App* sub = app.add_subcommand(
      "why", "Show the last operations that the policy refused at a path");
  const auto why = std::make_shared<WhyOptions>();
  sub->add_option("PATH", why->paths,
                  "One path; includes the operations below it");
  sub->add_flag("--json", why->json, "Print JSON");
  sub->callback([&command, why] {
    command.takes_trailing = true;
    command.run = [why](const Context& context) -> Result<int> {
      const auto paths = WithTrailing(why->paths, context);
      if (paths.size() == 1) return RunWhy(context, paths[0], why->json);
      return Fail(ErrorKind::kUsage, 0, "why takes one path",
                  "name the path of the refused operation: txfs why PATH");
    };
  });
}

/// `yes`: the answer.
void AddAnswer(CLI::App& app, Command& command, const char* name, bool yes,
               const char* help) {
  CLI::App* sub = app.add_subcommand(name, help);
  const auto ids = std::make_shared<std::vector<std::string>>();
  sub->add_option("ID", *ids,
                  "Number of a pending operation, from `txfs pending`")
      ->required();
  sub->callback([&command, ids, yes] {
    command.run = [ids, yes](const Context& context) {
      return RunAnswer(context, *ids, yes);
    };
  });
}

struct SavepointOptions {
  std::string name;
  std::optional<std::string> call;
  CallMark mark;  ///< of `call`
  bool json = false;
};

Result<int> MakeOrMark(const Context& context, SavepointOptions& savepoint) {
  const auto& words = context.trailing;
  if (!savepoint.call) {
    if (words.empty()) {
      return RunSavepoint(context, savepoint.name, savepoint.json);
    }
    return Fail(ErrorKind::kUsage, 0, "only a call has a command",
                "name the call with --call ID");
  }
  if (!savepoint.name.empty()) {
    return Fail(ErrorKind::kUsage, 0, "the savepoint of a call has no name",
                "omit the name, or --call");
  }
  savepoint.mark.call = *savepoint.call;
  for (const std::string& word : words) {
    savepoint.mark.command += savepoint.mark.command.empty() ? "" : " ";
    savepoint.mark.command += words.size() == 1 ? word : QuoteShell(word);
  }
  return RunMarkCall(context, savepoint.mark, savepoint.json);
}

void AddSavepoint(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "savepoint", "Create a savepoint that `txfs rollback` can return to");
  const auto savepoint = std::make_shared<SavepointOptions>();
  sub->add_option("NAME", savepoint->name,
                  "Name of the savepoint (default: sp1, sp2, ...)");
  CLI::Option* call =
      sub->add_option("--call", savepoint->call,
                      "Mark the begin of the agent's tool call with this id; "
                      "its command follows --")
          ->type_name("ID");
  const auto add = [&](const char* name, std::string& text, const char* help) {
    sub->add_option(name, text, help)->type_name("TEXT")->needs(call);
  };
  CallMark& mark = savepoint->mark;
  add("--host", mark.host, "The call's host, such as claude-code");
  add("--session", mark.session, "The call's session");
  add("--turn", mark.turn, "The call's prompt or turn");
  add("--agent", mark.agent, "The call's subagent");
  add("--tool", mark.tool, "The call's tool");
  sub->add_flag("--end", mark.end, "Mark the end of the call instead")
      ->needs(call);
  sub->add_flag("--json", savepoint->json, "Print the savepoint as JSON");
  sub->callback([&command, savepoint] {
    command.takes_trailing = true;
    command.run = [savepoint](const Context& context) {
      return MakeOrMark(context, *savepoint);
    };
  });
}

void AddRollback(CLI::App& app, Command& command) {
  CLI::App* sub =
      app.add_subcommand("rollback", "Return the transaction to a savepoint");
  const auto savepoint = std::make_shared<SavepointOptions>();
  sub->add_option("NAME", savepoint->name,
                  "Name of the savepoint (default: the newest)");
  sub->add_option("--call", savepoint->call, "Return to before this call")
      ->type_name("ID");
  sub->add_flag("--json", savepoint->json, "Print the outcome as JSON");
  sub->callback([&command, savepoint] {
    command.run = [savepoint](const Context& context) {
      return RunRollback(context, savepoint->name, savepoint->call,
                         savepoint->json);
    };
  });
}

void AddRevert(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "revert", "Take back the changes of one call, and keep later ones");
  const auto revert = std::make_shared<SavepointOptions>();
  sub->add_option("--call", revert->call,
                  "Number or id of the call, from `txfs log --calls`")
      ->type_name("ID")
      ->required();
  sub->add_flag("--json", revert->json, "Print the outcome as JSON");
  sub->callback([&command, revert] {
    command.run = [revert](const Context& context) {
      return RunRevert(context, *revert->call, revert->json);
    };
  });
}

void AddCommit(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "commit",
      "Apply the transaction to the workspace and begin the next one");
  const auto commit = std::make_shared<CommitArguments>();
  sub->add_option("PATH", commit->paths,
                  "Commit only changes at or below these paths, and the "
                  "changes they need; the rest stays in the transaction");
  sub->add_option("-m,--message", commit->message,
                  "Message that `txfs list` and `txfs show` print")
      ->type_name("MESSAGE");
  sub->add_option(
         "--on-conflict", commit->on_conflict,
         "How to resolve conflicts: commit nothing, keep one side of each, or "
         "merge the lines of both (default: fail)")
      ->type_name("WAY")
      ->check(CLI::IsMember({"fail", "mine", "theirs", "merge"}));
  sub->add_flag("--markers", commit->markers,
                "With merge: write conflict markers into files where both "
                "sides changed the same lines");
  sub->add_option("--accept", commit->accepted,
                  "Allow the commit to exceed the limit with this id; repeat "
                  "the option for more")
      ->type_name("ID")
      ->allow_extra_args(false);
  sub->add_flag("--dry-run", commit->dry_run,
                "Print the steps of the commit, and change nothing");
  sub->add_flag("--json", commit->json, "Print the outcome as JSON");
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
      "discard", "Drop the transaction and begin the next one");
  const auto discard = std::make_shared<DiscardOptions>();
  sub->add_option("PATH", discard->paths,
                  "Discard only changes at or below these paths; the rest "
                  "stays in the transaction");
  sub->add_flag("--json", discard->json, "Print the outcome as JSON");
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
            "List the operations that wait for approval", RunPending, true);
  AddAnswer(app, command, "approve", true, "Allow pending operations");
  AddAnswer(app, command, "deny", false, "Refuse pending operations");
  AddSavepoint(app, command);
  AddRollback(app, command);
  AddRevert(app, command);
  AddCommit(app, command);
  AddDiscard(app, command);
}

}  // namespace txfs::cli

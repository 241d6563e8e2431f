#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/mount_helper.h"
#include "cli/locate/trust.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "journal/support/memory.h"

namespace txfs::cli {
namespace {

using Action = std::function<Result<int>(const Context&)>;

/// What the parsed command line wants done.
struct Command {
  Action run;
  bool takes_trailing = false;    ///< arguments after "--"
  bool takes_transaction = true;  ///< -t
};

/// Values of options live here while CLI11 fills them in.
struct Values {
  std::vector<std::string> directories;
  std::optional<std::string> store;
  std::optional<std::string> transaction;
  bool as_owner = false;
  bool json = false;
  bool gone = false;
  std::string name;
  std::vector<std::string> paths;
  // Given but empty is not left out.
  std::optional<std::string> workspace, mountpoint, file;
  std::string log_path, log_op;
  MountArguments mount;
  UmountArguments umount;
  AdoptArguments adopt;
  LogArguments log;
  DiffArguments diff;
  CommitArguments commit;
  PolicyExplainArguments explain;
  PolicyTestArguments policy_test;
  ShowArguments show;
  KeepArguments keep;
  std::optional<std::string> ended;  ///< the transaction that a command names
};

std::optional<std::string> IfGiven(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

/// Paths of a command, and those after "--".
std::vector<std::string> WithTrailing(std::vector<std::string> paths,
                                      const Context& context) {
  paths.insert(paths.end(), context.trailing.begin(), context.trailing.end());
  return paths;
}

/// CLI11 takes -1, and what is too large, for large numbers. Returns what is
/// wrong with the number that `text` begins with.
std::string CheckNumber(const std::string& text) {
  uint64_t number = 0;
  const auto read =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (read.ec == std::errc::result_out_of_range) return text + " is too large";
  return read.ec == std::errc() ? "" : text + " is not a number from 0 on";
}

/// An option of bytes: 1048576, 10GiB, 500MB.
void AddBytes(CLI::App& sub, const char* name, std::optional<uint64_t>& bytes,
              const char* help) {
  // What is added last is done first.
  sub.add_option(name, bytes, help)
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false))
      ->transform(CLI::Validator(CheckNumber, ""));
}

void AddKeep(CLI::App& sub, KeepArguments& keep) {
  sub.add_option("--keep-commits", keep.commits,
                 "How many commits can be undone (default: 50)")
      ->check(CLI::Validator(CheckNumber, ""));
  AddBytes(sub, "--keep-bytes", keep.bytes,
           "How much of the disk that may take (default: 10 GiB)");
}

/// What a diff can be printed as; with a flag for JSON.
void AddDiffStyle(CLI::App& sub, DiffStyle& style, bool& json) {
  auto* names = sub.add_flag("--name-status", style.name_status,
                             "Only names and kinds of changes");
  auto* stat = sub.add_flag("--stat", style.stat, "Only counts of lines");
  auto* as_json = sub.add_flag("--json", json, "As JSON");
  names->excludes(stat)->excludes(as_json);
  stat->excludes(as_json);
  sub.add_flag("-z", style.nul, "End names with NUL")->needs(names);
  sub.add_option("--color", style.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

void AddMount(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "mount", "Mount a workspace: begin a transaction, or resume it");
  sub->add_option("WORKSPACE", values.workspace,
                  "Directory to work on (default: the current one)");
  sub->add_option("MOUNTPOINT", values.mountpoint,
                  "Where to mount it (default: over itself)");
  sub->add_option("--name", values.mount.name,
                  "Begin or resume the transaction of this name");
  sub->add_flag("--foreground,-f", values.mount.foreground,
                "Serve in this process until interrupted");
  sub->add_flag("--allow-other", values.mount.allow_other,
                "Let other users in");
  AddKeep(*sub, values.mount.keep);
  sub->add_option("--policy", values.mount.policies,
                  "File of rules about what may be done; more than once: all "
                  "of them hold")
      ->allow_extra_args(false);
  sub->add_flag("--no-default-policy", values.mount.no_default_policy,
                "Leave out the rules that are built in");
  sub->add_option("--without-rule", values.mount.without_rules,
                  "Leave out one rule or limit that is built in; more than "
                  "once: all of them")
      ->allow_extra_args(false);
  sub->add_option("-o", values.mount.options, "Mount options as for mount(8)")
      ->allow_extra_args(false);
  sub->callback([&] {
    command.takes_transaction = false;
    command.takes_trailing = true;
    command.run = [&](const Context& context) -> Result<int> {
      std::vector<std::string> paths;
      for (const auto& given : {values.workspace, values.mountpoint}) {
        if (given) paths.push_back(*given);
      }
      paths = WithTrailing(std::move(paths), context);
      if (paths.size() > 2) {
        return Fail(ErrorKind::kUsage, 0, "unexpected argument " + paths[2],
                    "name a workspace and a mountpoint");
      }
      if (!paths.empty()) values.mount.workspace = paths[0];
      if (paths.size() > 1) values.mount.mountpoint = paths[1];
      return RunMount(context, values.mount);
    };
  });
}

void AddUmount(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub =
      app.add_subcommand("umount", "Unmount; the transaction stays open");
  sub->add_option("DIR", values.umount.directory, "Somewhere in the mount");
  sub->add_flag("--lazy,-l", values.umount.lazy,
                "Detach now, end when the last process has left");
  sub->callback([&] {
    command.run = [&](const Context& context) {
      return RunUmount(context, values.umount);
    };
  });
}

void AddEnter(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "enter", "Start a shell, or the command after --, inside the mount");
  sub->add_option("WORKSPACE", values.workspace,
                  "Workspace or somewhere in it; mounted if need be");
  sub->callback([&] {
    command.takes_trailing = true;
    command.run = [&](const Context& context) {
      return RunEnter(context, values.workspace);
    };
  });
}

void AddAdopt(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "adopt",
      "Show what is open in a store that was not made here; --yes takes it "
      "over");
  sub->add_option("WORKSPACE", values.workspace,
                  "Workspace (default: the current one)");
  sub->add_option("--from", values.adopt.from,
                  "The store, or the path that a moved workspace had");
  sub->add_flag("--yes", values.adopt.yes, "Take over what is shown");
  sub->callback([&] {
    command.takes_transaction = false;
    command.run = [&](const Context& context) {
      values.adopt.workspace = values.workspace;
      return RunAdopt(context, values.adopt);
    };
  });
}

void AddDiff(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "diff", "Show what the transaction changes, as a git patch");
  DiffArguments& diff = values.diff;
  sub->add_option("PATH", diff.paths, "Only these and what is below them");
  AddDiffStyle(*sub, diff.style, diff.json);
  sub->add_flag("--no-pager", diff.no_pager, "Print at once");
  sub->add_option("--since", diff.since, "Only what changed since a savepoint");
  sub->callback([&] {
    command.takes_trailing = true;
    command.run = [&](const Context& context) {
      diff.paths = WithTrailing(diff.paths, context);
      return RunDiff(context, diff);
    };
  });
}

void AddLog(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub =
      app.add_subcommand("log", "Show every operation of the transaction");
  LogArguments& log = values.log;
  sub->add_flag("--json", log.json, "JSON lines");
  sub->add_option("--path", values.log_path, "Only at or below this path");
  sub->add_option("--op", values.log_op, "Only this operation");
  sub->add_option("-n", log.last, "Only the last so many")
      ->check(CLI::Range(uint64_t{1}, uint64_t{UINT32_MAX}));
  sub->add_flag("--denied", log.denied, "Only what a policy refused");
  sub->add_flag("--follow,-f", log.follow, "Go on until interrupted");
  sub->callback([&] {
    command.run = [&](const Context& context) {
      log.path = IfGiven(values.log_path);
      log.op = IfGiven(values.log_op);
      return RunLog(context, log);
    };
  });
}

void AddWhy(CLI::App& app, Values& values, Command& command) {
  CLI::App* sub =
      app.add_subcommand("why", "Show what the policy refused about a path");
  sub->add_option("PATH", values.paths, "It, and what is below it");
  sub->add_flag("--json", values.json, "As JSON");
  sub->callback([&] {
    command.takes_trailing = true;
    command.run = [&](const Context& context) -> Result<int> {
      const auto paths = WithTrailing(values.paths, context);
      if (paths.size() == 1) return RunWhy(context, paths[0], values.json);
      return Fail(ErrorKind::kUsage, 0, "why takes one path",
                  "name what could not be changed: txfs why PATH");
    };
  });
}

void AddAnswer(CLI::App& app, Values& values, Command& command,
               const char* name, const char* help) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->add_option("ID", values.paths, "Its number, as pending shows it")
      ->required();
  const bool yes = std::string_view(name) == "approve";
  sub->callback([&values, &command, yes] {
    command.run = [&values, yes](const Context& context) {
      return RunAnswer(context, values.paths, yes);
    };
  });
}

void AddAnswers(CLI::App& app, Values& values, Command& command) {
  CLI::App* pending = app.add_subcommand(
      "pending", "Show the operations that wait for somebody's approval");
  pending->add_flag("--json", values.json, "As JSON");
  pending->callback([&] {
    command.run = [&](const Context& context) {
      return RunPending(context, values.json);
    };
  });
  AddAnswer(app, values, command, "approve",
            "Let an operation that waits be done");
  AddAnswer(app, values, command, "deny", "Refuse an operation that waits");
}

void AddEnds(CLI::App& app, Values& values, Command& command) {
  CLI::App* commit = app.add_subcommand(
      "commit", "Apply the transaction to the workspace and begin the next");
  CommitArguments& arguments = values.commit;
  commit->add_option("PATH", arguments.paths,
                     "Only these, what is below them and what they need; the "
                     "transaction goes on with the rest");
  commit->add_option("-m,--message", arguments.message, "Recorded for list");
  commit
      ->add_option("--on-conflict", arguments.on_conflict,
                   "What counts where both sides changed: fail, mine, theirs "
                   "or merge")
      ->check(CLI::IsMember({"fail", "mine", "theirs", "merge"}));
  commit->add_flag("--markers", arguments.markers,
                   "With merge: put conflict markers where it is not clean");
  commit
      ->add_option("--accept", arguments.accepted,
                   "The id of a limit that this commit may exceed; more than "
                   "once: of several")
      ->allow_extra_args(false);
  commit->add_flag("--dry-run", arguments.dry_run,
                   "Say what would be done, touch nothing");
  commit->add_flag("--json", arguments.json, "The outcome as JSON");
  commit->callback([&arguments, &command] {
    command.takes_trailing = true;
    command.run = [&arguments](const Context& context) {
      arguments.paths = WithTrailing(arguments.paths, context);
      return RunCommit(context, arguments);
    };
  });
  CLI::App* discard = app.add_subcommand(
      "discard", "Throw the transaction away and begin the next");
  discard->add_option("PATH", values.paths,
                      "Only these and what is below them; the transaction goes "
                      "on with the rest");
  discard->add_flag("--json", values.json, "The outcome as JSON");
  discard->callback([&] {
    command.takes_trailing = true;
    command.run = [&](const Context& context) {
      return RunDiscard(context, WithTrailing(values.paths, context),
                        values.json);
    };
  });
}

void AddSavepoints(CLI::App& app, Values& values, Command& command) {
  CLI::App* savepoint = app.add_subcommand(
      "savepoint", "Mark this moment of the transaction, to go back to");
  savepoint->add_option("NAME", values.name, "Its name (default: sp1, ...)");
  savepoint->add_flag("--json", values.json, "The savepoint as JSON");
  savepoint->callback([&] {
    command.run = [&](const Context& context) {
      return RunSavepoint(context, values.name, values.json);
    };
  });
  CLI::App* rollback =
      app.add_subcommand("rollback", "Take back everything since a savepoint");
  rollback->add_option("NAME", values.name,
                       "Its name (default: the newest one)");
  rollback->add_flag("--json", values.json, "The outcome as JSON");
  rollback->callback([&] {
    command.run = [&](const Context& context) {
      return RunRollback(context, values.name, values.json);
    };
  });
}

void AddHistory(CLI::App& app, Values& values, Command& command) {
  CLI::App* undo = app.add_subcommand(
      "undo", "Take a commit back: the workspace is as it was before it");
  undo->add_option("TXN", values.ended,
                   "Its name, or the beginning of its id (default: the newest "
                   "commit)");
  undo->add_flag("--json", values.json, "The outcome as JSON");
  undo->callback([&] {
    command.run = [&](const Context& context) {
      return RunUndo(context, values.ended, values.json);
    };
  });
  ShowArguments& show = values.show;
  CLI::App* shown =
      app.add_subcommand("show", "Show a transaction and what it changed");
  shown->add_option("TXN", show.transaction,
                    "Its name, or the beginning of its id");
  AddDiffStyle(*shown, show.style, show.json);
  shown->add_flag("--no-pager", show.no_pager, "Print at once");
  shown->callback([&] {
    command.run = [&](const Context& context) {
      return RunShow(context, show);
    };
  });
  CLI::App* gc = app.add_subcommand(
      "gc", "Free what is kept of ended transactions for undo");
  AddKeep(*gc, values.keep);
  gc->add_flag("--json", values.json, "The outcome as JSON");
  gc->add_flag("--gone", values.gone,
               "Free the stores of workspaces that are gone");
  gc->callback([&] {
    command.takes_transaction = false;
    command.run = [&](const Context& context) {
      return values.gone ? RunGcGone(values.json)
                         : RunGc(context, values.keep, values.json);
    };
  });
}

void AddPolicyOfFiles(CLI::App& policy, Values& values, Command& command) {
  CLI::App* check =
      policy.add_subcommand("check", "Say whether a file is a policy");
  check->add_option("FILE", values.name, "The file")->required();
  check->callback([&] {
    command.takes_transaction = false;
    command.run = [&](const Context& context) {
      return RunPolicyCheck(context, values.name);
    };
  });
  CLI::App* lint =
      policy.add_subcommand("lint", "Warn of rules that are hardly meant");
  lint->add_option("FILE", values.file, "A file (default: those in force)");
  lint->callback([&] {
    command.run = [&](const Context& context) {
      return RunPolicyLint(context, values.file);
    };
  });
  PolicyTestArguments& test = values.policy_test;
  CLI::App* tests = policy.add_subcommand(
      "test", "Say whether the rules say what is expected of them");
  tests->add_option("--policy", test.file,
                    "A file of rules (default: those in force)");
  tests->add_option("CASES", test.cases,
                    "JSON lines (default: the examples of the rules)");
  tests->callback([&] {
    command.run = [&](const Context& context) {
      return RunPolicyTest(context, test);
    };
  });
}

void AddPolicyInForce(CLI::App& policy, Values& values, Command& command) {
  CLI::App* show =
      policy.add_subcommand("show", "Show the rules that are in force");
  show->add_option("DIR", values.workspace, "In the mount or workspace");
  show->add_flag("--json", values.json, "As JSON");
  show->callback([&] {
    command.run = [&](const Context& context) {
      return RunPolicyShow(context, values.workspace, values.json);
    };
  });
  CLI::App* reload = policy.add_subcommand(
      "reload", "Put the rules in force as they are in their files now");
  reload->add_option("DIR", values.workspace, "Somewhere in the mount");
  reload->callback([&] {
    command.run = [&](const Context& context) {
      return RunPolicyReload(context, values.workspace);
    };
  });
}

void AddPolicy(CLI::App& app, Values& values, Command& command) {
  CLI::App* policy =
      app.add_subcommand("policy", "Look at rules, and exchange them");
  policy->require_subcommand(1);
  AddPolicyOfFiles(*policy, values, command);
  AddPolicyInForce(*policy, values, command);
  PolicyExplainArguments& arguments = values.explain;
  CLI::App* explain = policy->add_subcommand(
      "explain", "Say what the rules are about an operation on a path");
  explain->add_option("--policy", arguments.file,
                      "A file of rules (default: those in force)");
  explain->add_option("--exe", arguments.exe, "Path of the program");
  explain->add_option("--type", arguments.type,
                      "What is there: file, directory, symlink or other");
  explain->add_flag("--new", arguments.is_new,
                    "What is there was made in the transaction");
  explain->add_flag("--json", arguments.json, "As JSON");
  explain->add_option("OP", arguments.op, "As `txfs log` calls it")->required();
  explain->add_option("PATH", arguments.path, "In the workspace or mount")
      ->required();
  explain->add_option("NEWPATH", arguments.new_path,
                      "The other one of rename, exchange or link");
  explain->callback([&] {
    command.run = [&](const Context& context) {
      return RunPolicyExplain(context, arguments);
    };
  });
}

void AddReports(CLI::App& app, Values& values, Command& command) {
  CLI::App* status =
      app.add_subcommand("status", "Show the workspace and its transaction");
  status->add_flag("--json", values.json, "As JSON");
  status->callback([&] {
    command.run = [&](const Context& context) {
      return RunStatus(context, values.json);
    };
  });
  CLI::App* list = app.add_subcommand(
      "list", "List the workspace's transactions, open and ended");
  list->add_flag("--json", values.json, "As JSON");
  list->callback([&] {
    command.takes_transaction = false;
    command.run = [&](const Context& context) {
      return RunList(context, values.json);
    };
  });
  CLI::App* fsck = app.add_subcommand(
      "fsck", "Check the store: journals, contents and trees; never writes");
  fsck->add_flag("--json", values.json, "As JSON");
  fsck->callback([&] {
    command.takes_transaction = false;
    command.run = [&](const Context& context) {
      return RunFsck(context, values.json);
    };
  });
  app.add_subcommand("version", "Print the version")->callback([&] {
    command.takes_transaction = false;
    command.run = [](const Context&) -> Result<int> {
      std::puts("txfs " TXFS_VERSION);
      return 0;
    };
  });
}

void SetUp(CLI::App& app, Values& values, Command& command) {
  app.name("txfs");
  app.set_version_flag("--version", "txfs " TXFS_VERSION);
  app.require_subcommand(0, 1);
  app.fallthrough();
  app.add_option("-C", values.directories,
                 "Work as if started in this directory")
      ->allow_extra_args(false);
  app.add_option("--store", values.store, "Directory of the store");
  app.add_flag("--as-owner", values.as_owner,
               "As root: act as the user whose workspace it is");
  app.add_option("-t,--transaction", values.transaction,
                 "Transaction: its name, its id, or the beginning of its id");
  AddMount(app, values, command);
  AddUmount(app, values, command);
  AddEnter(app, values, command);
  AddAdopt(app, values, command);
  AddReports(app, values, command);
  AddDiff(app, values, command);
  AddLog(app, values, command);
  AddWhy(app, values, command);
  AddAnswers(app, values, command);
  AddSavepoints(app, values, command);
  AddEnds(app, values, command);
  AddHistory(app, values, command);
  AddPolicy(app, values, command);
}

/// What -C names. A dead mount is for the command to say.
Status CheckDirectory(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) == 0) {
    if (S_ISDIR(st.st_mode)) return {};
    return Fail(ErrorKind::kFailed, ENOTDIR, "cannot change to " + path,
                "name a directory of a workspace with -C");
  }
  if (errno != ENOENT && errno != ENOTDIR) return {};
  return Fail(0, path + " does not exist",
              "name a directory of a workspace with -C");
}

Result<Context> MakeContext(const Values& values) {
  Context context{.directory = TRY(CurrentDirectory()),
                  .store = std::nullopt,
                  .transaction = values.transaction,
                  .trailing = {}};
  TRY(CheckWay("/", context.directory));
  for (const std::string& directory : values.directories) {
    context.directory = TRY(ResolveDirectory(context.directory, directory));
    TRY(CheckDirectory(context.directory));
  }
  if (values.store && values.store->empty()) {
    return Fail(ErrorKind::kUsage, 0, "an empty path names no store",
                "name its directory, or leave --store out");
  }
  if (values.store) {
    TRY(CheckWay(context.directory, *values.store));
    context.store = ResolvePath(context.directory, *values.store);
  }
  return context;
}

/// What comes after the first "--" is not CLI11's: it cannot tell a command's
/// words from positional arguments that were left out.
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
          .hint = "`txfs --help` and `txfs COMMAND --help` list what there is",
          .kind = ErrorKind::kUsage};
}

/// `text` is CLI11's list of what it could not place.
Error UnexpectedArgument(const std::string& text) {
  const size_t colon = text.find(": ");
  const std::string what =
      colon == std::string::npos ? text : text.substr(colon + 2);
  return UsageError(what.starts_with('-') ? "unknown option " + what
                                          : "unexpected argument " + what);
}

/// The directory that a command is about, as text: where it leads is looked at
/// by who acts for its owner.
Result<std::string> TargetOf(const Values& values) {
  std::filesystem::path target = TRY(CurrentDirectory());
  for (const std::string& directory : values.directories) target /= directory;
  for (const auto& given :
       {values.store, values.workspace, values.umount.directory}) {
    if (given) target /= *given;
  }
  return target.lexically_normal().native();
}

/// `all`: the whole command line.
Result<int> RunParsed(const Values& values, const Command& command,
                      std::vector<std::string> trailing,
                      const std::vector<std::string>& all) {
  if (!command.run) return std::unexpected(UsageError("no command is given"));
  if (!trailing.empty() && !command.takes_trailing) {
    return std::unexpected(
        UsageError("this command takes no arguments after --"));
  }
  if (values.transaction && !command.takes_transaction) {
    return std::unexpected(
        UsageError("this command takes no -t (`txfs mount` takes --name)"));
  }
  if (values.as_owner) {
    const std::string target = TRY(TargetOf(values));
    TRY(ActAsOwner(target, all));
  }
  Context context = TRY(MakeContext(values));
  context.trailing = std::move(trailing);
  return command.run(context);
}

Result<int> RunTxfs(const std::vector<std::string>& all) {
  std::vector<std::string> arguments(all.begin() + 1, all.end());
  std::vector<std::string> trailing = CutTrailing(arguments);
  Values values;
  Command command;
  CLI::App app("txfs: work on a directory in a transaction");
  SetUp(app, values, command);
  // CLI11 takes the arguments from the back.
  std::ranges::reverse(arguments);
  try {
    app.parse(arguments);
  } catch (const CLI::Success& answer) {
    return app.exit(answer);
  } catch (const CLI::ExtrasError& error) {
    return std::unexpected(UnexpectedArgument(error.what()));
  } catch (const CLI::ParseError& error) {
    return std::unexpected(UsageError(error.what()));
  }
  return RunParsed(values, command, std::move(trailing), all);
}

/// Where the caller closed one of the three, a file or a socket of ours must
/// not become it. What would be read or written fails all the same.
void HoldStandardDescriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest that is free, which is this one.
    std::ignore = ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// `all`: the program's name first.
Result<int> Run(const std::vector<std::string>& all) {
  const std::string& program = all.front();
  if (program.substr(program.rfind('/') + 1) == kMountHelper) {
    return RunMountHelper(all);
  }
  return RunTxfs(all);
}

}  // namespace
}  // namespace txfs::cli

int main(int argc, char** argv) {
  txfs::cli::HoldStandardDescriptors();
  txfs::DeepenStacks();
  std::vector<std::string> arguments(argv, argv + argc);
  if (arguments.empty()) arguments.emplace_back("txfs");
  const auto exit_code = txfs::cli::Run(arguments);
  return exit_code ? *exit_code : txfs::cli::Report(exit_code.error());
}

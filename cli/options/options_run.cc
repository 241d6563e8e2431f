#include <memory>

#include "cli/options/options.h"
#include "cli/run/profile.h"
#include "cli/run/run.h"

namespace txfs::cli {
namespace {

/// Takes the outcome `name` into `settle`; leaves it as it is for "".
Status TakeSettle(const std::string& name, Settle& settle) {
  if (name.empty()) return {};
  const auto named = SettleNamed(name);
  if (!named) {
    return Fail(ErrorKind::kUsage, 0, "unknown outcome " + name,
                "commit, keep and discard are possible");
  }
  settle = *named;
  return {};
}

/// The options as they are given.
struct RunOptions {
  RunArguments run;
  std::string on_success, on_failure;  ///< "": not given
  std::string timeout, network = "host";
  bool keep = false, may_not_nest = false;
  std::vector<std::string> words;  ///< of the command, before "--"
};

/// "90", "90s", "10m", "2h" in milliseconds.
Result<uint64_t> ParseDuration(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  const std::string unit = text.substr(digits);
  uint64_t factor = 0;
  if (unit.empty() || unit == "s") factor = 1000;
  if (unit == "ms") factor = 1;
  if (unit == "m") factor = 60'000;
  if (unit == "h") factor = 3'600'000;
  if (digits == 0 || digits > 9 || factor == 0) {
    return Fail(ErrorKind::kUsage, 0, text + " is no duration",
                "write a number and ms, s, m or h, such as 10m");
  }
  return std::stoull(text.substr(0, digits)) * factor;
}

Result<RunArguments> ToArguments(const RunOptions& options,
                                 const std::vector<std::string>& words,
                                 const Context& context) {
  RunArguments run = options.run;
  run.command = words;
  if (!words.empty() && !context.trailing.empty()) run.command.push_back("--");
  std::ranges::copy(context.trailing, std::back_inserter(run.command));
  if (run.command.empty()) {
    return Fail(ErrorKind::kUsage, 0, "no command is given",
                "`txfs run -- COMMAND` runs one");
  }
  if (const auto profile = TRY(FindProfile(run.profile, run.command))) {
    ApplyProfile(*profile, context, run);
  }
  TRY(TakeSettle(options.keep ? "keep" : options.on_success, run.on_success));
  TRY(TakeSettle(options.keep ? "keep" : options.on_failure, run.on_failure));
  if (options.may_not_nest) run.may_nest = false;
  if (!options.timeout.empty()) {
    run.timeout_ms = TRY(ParseDuration(options.timeout));
  }
  if (options.network != "host" && options.network != "none") {
    return Fail(ErrorKind::kUsage, 0, "unknown network " + options.network,
                "host and none are possible");
  }
  run.has_network = options.network == "host";
  return run;
}

void AddList(CLI::App& sub, const char* name, std::vector<std::string>& list,
             const char* type, const char* help) {
  sub.add_option(name, list, help)->type_name(type)->allow_extra_args(false);
}

}  // namespace

void AddRunCommands(CLI::App& app, Command& command) {
  CLI::App* sub = app.add_subcommand(
      "run",
      "Run the command after -- in a sandbox, as one transaction: commit if it "
      "succeeds, roll back if it fails");
  const auto options = std::make_shared<RunOptions>();
  RunArguments& run = options->run;
  sub->add_option("COMMAND", options->words,
                  "Command to run, with its arguments");
  // The options of the command are its own.
  sub->positionals_at_end();
  sub->add_option("--name", run.name,
                  "Use the transaction with this name, in a mount of its own")
      ->type_name("NAME");
  sub->add_option("--profile", run.profile,
                  "Use this profile, or none (default: the one for the "
                  "command's program, if there is one)")
      ->type_name("NAME");
  AddList(*sub, "--validate", run.validators, "COMMAND",
          "After success, run this shell command in the transaction; if it "
          "fails, roll back (exit code 5); repeat the option for more");
  sub->add_option("--on-success", options->on_success,
                  "commit (default), keep or discard the changes")
      ->type_name("WHAT");
  sub->add_option("--on-failure", options->on_failure,
                  "discard (default), keep or commit the changes")
      ->type_name("WHAT");
  sub->add_flag("--keep", options->keep,
                "Keep the changes in the transaction in any case");
  sub->add_option("--timeout", options->timeout,
                  "End the command after this time (exit code 124)")
      ->type_name("TIME");
  sub->add_option("--home", run.home,
                  "What the command writes to the home: cow (default): it "
                  "stays in the run; ro: refused; rw: written")
      ->type_name("HOW")
      ->check(CLI::IsMember({"cow", "ro", "rw"}));
  AddList(*sub, "--rw", run.rw, "PATH",
          "Keep what the command writes to this path; repeat the option for "
          "more");
  AddList(*sub, "--hide", run.hide, "PATH",
          "Hide this path; repeat the option for more");
  AddList(*sub, "--show", run.show, "PATH",
          "Do not hide this path; repeat the option for more");
  AddList(*sub, "--env", run.env, "NAME[=VALUE]",
          "Pass or set this environment variable; repeat the option for more");
  sub->add_option("--network", options->network, "host (default) or none")
      ->type_name("WHAT");
  sub->add_flag("--nested", run.may_nest,
                "Let the command make user namespaces, for a sandbox of its "
                "own");
  sub->add_flag("--no-nested", options->may_not_nest,
                "Do not, whatever the profile says")
      ->excludes("--nested");
  sub->add_option("-m,--message", run.message, "Describe the commit")
      ->type_name("MESSAGE");
  sub->callback([&command, options] {
    command.takes_trailing = true;
    command.takes_transaction = false;
    command.run = [options, words = options->words](
                      const Context& context) -> Result<int> {
      const RunArguments given = TRY(ToArguments(*options, words, context));
      return RunInTransaction(context, given);
    };
  });
}

}  // namespace txfs::cli

#include <memory>

#include "cli/options/options.h"
#include "cli/output/errors.h"
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
  std::string memory, cpu_time, disk;
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

/// "500", "100M", "4GiB" in bytes.
Result<uint64_t> ParseMemory(const std::string& text) {
  size_t digits = 0;
  while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') {
    ++digits;
  }
  std::string unit = text.substr(digits);
  if (unit.ends_with("iB")) unit.resize(unit.size() - 2);
  constexpr std::string_view kLetters = "KMGT";
  const size_t letter = unit.empty() ? 0 : kLetters.find(unit);
  if (digits == 0 || digits > 12 || unit.size() > 1 ||
      letter == std::string_view::npos) {
    return Fail(ErrorKind::kUsage, 0, text + " is no size",
                "write a number and K, M, G or T, such as 4G");
  }
  const int shift = unit.empty() ? 0 : 10 * (static_cast<int>(letter) + 1);
  constexpr uint64_t kMost = 1ULL << 52;
  const uint64_t number = std::stoull(text.substr(0, digits));
  if (number == 0 || number > kMost >> shift) {
    return Fail(ErrorKind::kUsage, 0, text + " is no limit",
                "write more than 0 and at most 4096T");
  }
  return number << shift;
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
  if (!options.memory.empty()) {
    run.limits.memory = TRY(ParseMemory(options.memory));
  }
  if (!options.disk.empty()) run.limits.disk = TRY(ParseMemory(options.disk));
  if (!options.cpu_time.empty()) {
    run.limits.cpu_ms = TRY(ParseDuration(options.cpu_time));
    if (run.limits.cpu_ms == 0) {
      return Fail(ErrorKind::kUsage, 0, "--cpu-time is 0",
                  "write a longer time, such as 10m");
    }
  }
  if (options.network != "host" && options.network != "none") {
    return Fail(ErrorKind::kUsage, 0, "unknown network " + options.network,
                "host and none are possible");
  }
  run.has_network = options.network == "host";
  return run;
}

Result<int> RunGiven(const RunOptions& options,
                     const std::vector<std::string>& words,
                     const Context& context) {
  const RunArguments run = TRY(ToArguments(options, words, context));
  return RunInTransaction(context, run);
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
  sub->add_option("--memory", options->memory,
                  "End the run if the command uses more memory (exit code 123)")
      ->type_name("SIZE");
  sub->add_option("--cpu-time", options->cpu_time,
                  "End the run if the command computes for longer (exit code "
                  "123)")
      ->type_name("TIME");
  sub->add_option("--pids", run.limits.pids,
                  "End the run if the command has more processes and threads "
                  "at a time (exit code 123)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  sub->add_option("--disk", options->disk,
                  "End the run if it writes more to the workspace, or to the "
                  "private home (exit code 123)")
      ->type_name("SIZE");
  sub->add_option("--files", run.limits.files,
                  "End the run if it makes more files and directories there "
                  "(exit code 123)")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000'000));
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
  sub->add_flag("--no-sandbox", run.no_sandbox,
                "Run the command in the mount alone, where nothing protects "
                "the rest of the machine");
  sub->add_flag("--strict", run.strict,
                "Roll back if the policy refused an operation (exit code 4)");
  sub->add_option("--json", run.json, "Write a report to this file")
      ->type_name("FILE");
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
      const auto code = RunGiven(*options, words, context);
      if (code) return *code;
      // Its exit codes are the command's, but for this one.
      static_cast<void>(Report(code.error()));
      return kRunFailed;
    };
  });
}

}  // namespace txfs::cli

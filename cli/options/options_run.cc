#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/config_file.h"
#include "cli/run/nested.h"
#include "cli/run/network_names.h"
#include "cli/run/profile.h"
#include "cli/run/quantity.h"
#include "cli/run/run.h"
#include "cli/run/run_config.h"

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
  std::string timeout, network, home, direct;
  std::string memory, cpu_time, disk;
  bool keep = false, may_not_nest = false, ignores_config = false;
  std::vector<std::string> words;  ///< of the command, before "--"
};

/// Takes what the command line and the profile leave open from the user's
/// configuration.
class Defaults {
 public:
  Defaults(const RunConfig& config, const Context& context, RunOptions& options)
      : config_(config), context_(context), options_(options) {}

  void Take(const std::optional<Profile>& profile) {
    RunArguments& run = options_.run;
    Fill("network", config_.network, options_.network);
    Fill("home", config_.home, options_.home);
    Fill("timeout", config_.timeout, options_.timeout);
    Fill("memory", config_.memory, options_.memory);
    Fill("cpu_time", config_.cpu_time, options_.cpu_time);
    Fill("disk", config_.disk, options_.disk);
    if (run.limits.pids == 0) Fill("pids", config_.pids, run.limits.pids);
    if (run.limits.files == 0) Fill("files", config_.files, run.limits.files);
    if (!run.strict) Fill("strict", config_.strict, run.strict);
    if (!run.may_nest && !options_.may_not_nest) {
      Fill("nested", config_.may_nest, run.may_nest);
    }
    if (options_.on_success.empty() && !options_.keep &&
        !(profile && profile->on_success)) {
      Fill("on_success", config_.on_success, run.on_success);
    }
    if (options_.on_failure.empty() && !options_.keep &&
        !(profile && profile->on_failure)) {
      Fill("on_failure", config_.on_failure, run.on_failure);
    }
    const std::vector<std::string> given_show = run.show;
    const std::vector<std::string> given_hide = run.hide;
    Add("show", Beside(config_.show, given_hide), run.show);
    Add("rw", Writable(Beside(config_.rw, given_hide)), run.rw);
    Add("hide", Beside(config_.hide, given_show), run.hide);
    Add("env", config_.env, run.env);
    Add("validate", config_.validators, run.validators);
  }

 private:
  void Note(std::string_view key) {
    options_.run.configuration.push_back(
        {std::string(key), config_.places.find(key)->second});
  }
  /// An empty text is none.
  void Fill(std::string_view key, const std::optional<std::string>& from,
            std::string& to) {
    if (!from || !to.empty()) return;
    to = *from;
    Note(key);
  }
  template <class Value>
  void Fill(std::string_view key, const std::optional<Value>& from, Value& to) {
    if (!from) return;
    to = *from;
    Note(key);
  }
  void Add(std::string_view key, const std::vector<std::string>& from,
           std::vector<std::string>& to) {
    if (from.empty()) return;
    to.insert(to.begin(), from.begin(), from.end());
    Note(key);
  }
  /// Those of `paths` that lie in none of `others`.
  [[nodiscard]] std::vector<std::string> Beside(
      std::vector<std::string> paths,
      const std::vector<std::string>& others) const {
    std::erase_if(paths, [&](const std::string& path) {
      return std::ranges::any_of(others, [&](const std::string& other) {
        return IsWithin(ResolvePath("/", path),
                        ResolvePath(context_.directory, other));
      });
    });
    return paths;
  }

  /// Only what is there can be bound, but in a home that is copied on write.
  [[nodiscard]] std::vector<std::string> Writable(
      std::vector<std::string> paths) const {
    const bool is_private = options_.home.empty() || options_.home == "cow";
    const std::string home = ResolvePath("/", HomeDirectory());
    std::erase_if(paths, [&](const std::string& path) {
      const std::string real = ResolvePath("/", path);
      return ::access(real.c_str(), F_OK) != 0 &&
             !(is_private && IsWithin(real, home));
    });
    return paths;
  }

  const RunConfig& config_;
  const Context& context_;
  RunOptions& options_;
};

/// Takes --network. `run` has the names of the profile.
Status TakeNetwork(const std::string& text, RunArguments& run) {
  run.has_network = text == "host";
  if (text == "host" || text == "none") {
    run.network.clear();
    return {};
  }
  run.network = TRY(ParseNetwork(text, run.network));
  return {};
}

/// Refuses --network of a run without a sandbox, which has the machine's.
Status RefuseNetwork(const RunOptions& options) {
  if (options.network.empty() || options.network == "host") return {};
  return Fail(ErrorKind::kUsage, 0,
              "--network=" + options.network +
                  " does not go with --no-sandbox, with which the command has "
                  "the machine's network",
              "leave one of the two out");
}

/// Notes in `run` what was asked for, and is not enforced without a sandbox.
/// `given`: the options before the configuration was taken; `options`: after.
void TakeUnenforced(const RunOptions& given, RunOptions& options) {
  RunArguments& run = options.run;
  const auto note = [&](const char* key, const char* option, bool is_given,
                        bool is_asked_for) {
    if (is_given) run.unenforced.push_back({option, ""});
    for (const TakenSetting& setting : run.configuration) {
      if (setting.key == key && is_asked_for) run.unenforced.push_back(setting);
    }
    // The others hold as they are, such as home = "rw".
    std::erase_if(run.configuration, [&](const TakenSetting& setting) {
      return setting.key == key && is_asked_for;
    });
  };
  note("network", "--network", false,
       !options.network.empty() && options.network != "host");
  options.network = "host";
  note("home", "--home", !given.home.empty() && given.home != "rw",
       options.home != "rw");
  note("hide", "--hide", !given.run.hide.empty(), true);
  note("nested", "--no-nested", given.may_not_nest, !run.may_nest);
}

/// Refuses what a run in a run cannot give: it has the sandbox, the limits and
/// the transaction of the run around it.
Status RefuseInRun(const RunOptions& options) {
  const RunArguments& run = options.run;
  const std::array<std::pair<const char*, bool>, 11> refused = {{
      {"--network", !options.network.empty() && options.network != "host"},
      {"--home", !options.home.empty() && options.home != "rw"},
      {"--hide", !run.hide.empty()},
      {"--memory", !options.memory.empty()},
      {"--cpu-time", !options.cpu_time.empty()},
      {"--pids", run.limits.pids != 0},
      {"--disk", !options.disk.empty()},
      {"--files", run.limits.files != 0},
      {"--strict", run.strict},
      {"--no-nested", options.may_not_nest},
      {"--name", run.name.has_value()},
  }};
  for (const auto& [name, is_given] : refused) {
    if (!is_given) continue;
    return Fail(ErrorKind::kUsage, 0,
                std::string(name) + " has no effect for a run in a run",
                "give it to the run around this one");
  }
  return {};
}

/// Checks that `paths` of --rw can be bound.
Status CheckWritable(const std::vector<std::string>& paths,
                     const Context& context, const RunArguments& run) {
  const std::string home = ResolvePath("/", HomeDirectory());
  for (const std::string& path : paths) {
    const std::string real = ResolvePath(context.directory, path);
    const bool is_private = run.home == "cow" && IsWithin(real, home);
    if (is_private || run.no_sandbox || ::access(real.c_str(), F_OK) == 0) {
      continue;
    }
    return Fail(ErrorKind::kUsage, errno, "--rw " + PathText(path),
                "make it before the run, or leave --rw out");
  }
  return {};
}

/// Checks that `paths` of --show have no sockets of txfs in them: below /run,
/// they are shown as they are.
Status CheckShown(const std::vector<std::string>& paths,
                  const Context& context) {
  std::vector<std::string> own = RuntimeDirectories(::geteuid());
  own.emplace_back(kRunSocket);
  for (const std::string& path : paths) {
    const std::string real = ResolvePath(context.directory, path);
    if (!IsWithin(real, "/run")) continue;
    for (const std::string& directory : own) {
      if (!IsWithin(directory, real) && !IsWithin(real, directory)) continue;
      return Fail(ErrorKind::kUsage, 0,
                  "--show " + PathText(path) + " has sockets of txfs in it",
                  "name what the command needs of it, such as "
                  "/run/docker.sock");
    }
  }
  return {};
}

Status CheckValidators(const std::vector<std::string>& validators) {
  for (const std::string& validator : validators) {
    if (validator.find_first_not_of(" \t\n") != std::string::npos) continue;
    return Fail(ErrorKind::kUsage, 0, "--validate has no command",
                "write a shell command, or leave the option out");
  }
  return {};
}

/// Checks that each of --env is NAME or NAME=VALUE.
Status CheckVariables(const std::vector<std::string>& variables) {
  for (const std::string& variable : variables) {
    const std::string name = variable.substr(0, variable.find('='));
    const bool is_name = !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
                         std::ranges::all_of(name, [](char c) {
                           return (c >= 'a' && c <= 'z') ||
                                  (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '_';
                         });
    if (is_name) continue;
    return Fail(ErrorKind::kUsage, 0,
                "--env " + PathText(variable) + " does not name a variable",
                "write NAME or NAME=VALUE");
  }
  return {};
}

/// A path that is not there is hidden by nothing, and may be misspelt.
void WarnOfNothingToHide(const std::vector<std::string>& paths,
                         const Context& context) {
  for (const std::string& path : paths) {
    const std::string real = ResolvePath(context.directory, path);
    if (::access(real.c_str(), F_OK) == 0 || errno == EACCES) continue;
    Say("warning: --hide " + PathText(path) + ": nothing is there");
  }
}

/// Takes the size of `option`; leaves `bytes` as it is for "".
Status TakeSize(const char* option, const std::string& text, uint64_t& bytes) {
  if (text.empty()) return {};
  auto size = ParseSize(text);
  if (!size) {
    size.error().message = std::string(option) + ": " + size.error().message;
    return std::unexpected(std::move(size).error());
  }
  bytes = *size;
  return {};
}

/// Takes the time of `option`; leaves `ms` as it is for "".
Status TakeTime(const char* option, const std::string& text, uint64_t& ms) {
  if (text.empty()) return {};
  auto time = ParseDuration(text);
  if (!time) {
    time.error().message = std::string(option) + ": " + time.error().message;
    return std::unexpected(std::move(time).error());
  }
  ms = *time;
  if (ms != 0) return {};
  return Fail(ErrorKind::kUsage, 0, std::string(option) + " is 0",
              "write a longer time, such as 10m");
}

Result<RunArguments> ToArguments(RunOptions options,
                                 const std::vector<std::string>& words,
                                 const Context& context) {
  RunArguments& run = options.run;
  run.command = words;
  if (!words.empty() && !context.trailing.empty()) run.command.push_back("--");
  std::ranges::copy(context.trailing, std::back_inserter(run.command));
  if (run.command.empty() || run.command.front().empty()) {
    return Fail(ErrorKind::kUsage, 0, "no command is given",
                "`txfs run -- COMMAND` runs one");
  }
  // A run in a run has the sandbox of the outer one, and sees neither
  // configuration nor profiles.
  const bool is_nested = IsInRun();
  if (is_nested) TRY(RefuseInRun(options));
  const RunConfig config =
      is_nested || options.ignores_config ? RunConfig() : TRY(ReadRunConfig());
  const bool takes_profile = !run.profile && config.profile;
  if (takes_profile) run.profile = config.profile;
  const auto profile = is_nested ? std::optional<Profile>()
                                 : TRY(FindProfile(run.profile, run.command));
  TRY(CheckValidators(run.validators));
  TRY(CheckVariables(run.env));
  if (!is_nested) WarnOfNothingToHide(run.hide, context);
  const bool is_plain = run.no_sandbox && !is_nested;
  if (is_plain) TRY(RefuseNetwork(options));
  const RunOptions given = options;
  Defaults(config, context, options).Take(profile);
  if (is_plain) TakeUnenforced(given, options);
  if (takes_profile) {
    run.configuration.push_back(
        {"profile", config.places.find("profile")->second});
  }
  run.home = options.home.empty() ? "cow" : options.home;
  TRY(CheckWritable(given.run.rw, context, run));
  if (!run.no_sandbox && !is_nested) TRY(CheckShown(run.show, context));
  if (options.network.empty()) options.network = "host";
  if (profile) ApplyProfile(*profile, context, run);
  if (!is_nested) TRY(TakeNetwork(options.network, run));
  TRY(TakeSettle(options.keep ? "keep" : options.on_success, run.on_success));
  TRY(TakeSettle(options.keep ? "keep" : options.on_failure, run.on_failure));
  if (options.may_not_nest) run.may_nest = false;
  run.direct = options.direct == "auto";
  TRY(TakeTime("--timeout", options.timeout, run.timeout_ms));
  TRY(TakeTime("--cpu-time", options.cpu_time, run.limits.cpu_ms));
  TRY(TakeSize("--memory", options.memory, run.limits.memory));
  TRY(TakeSize("--disk", options.disk, run.limits.disk));
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
  sub->add_option("--home", options->home,
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
  sub->add_option("--network", options->network,
                  "host (default), none, or names of hosts to reach, with "
                  "commas between them; *.example.org: those below it; "
                  "profile: those of the profile")
      ->type_name("WHAT");
  sub->add_flag("--nested", run.may_nest,
                "Let the command make user namespaces, for a sandbox of its "
                "own");
  sub->add_flag("--no-sandbox", run.no_sandbox,
                "Run the command in the mount alone, where nothing protects "
                "the rest of the machine");
  sub->add_flag("--strict", run.strict,
                "Roll back if the policy refused an operation (exit code 4)");
  sub->add_flag("--unjudged", run.unjudged,
                "Do not ask the rules for commands, which may refuse the "
                "command (exit code 4)");
  sub->add_option("--direct", options->direct,
                  "auto: a command that only reads, by the rules, has no "
                  "transaction, and nothing to write to; never (default)")
      ->type_name("WHEN")
      ->check(CLI::IsMember({"auto", "never"}));
  sub->add_option("--json", run.json, "Write a report to this file")
      ->type_name("FILE");
  sub->add_flag("--no-nested", options->may_not_nest,
                "Do not, whatever the profile says")
      ->excludes("--nested");
  sub->add_flag("--no-config", options->ignores_config,
                "Do not use [run] of the user's configuration");
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

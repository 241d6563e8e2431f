#include "cli/run/run_config.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <utility>

#include "cli/locate/reach.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/config_file.h"
#include "cli/run/quantity.h"
#include "policy/section.h"
#include "policy/sources.h"

namespace txfs::cli {
namespace {

using policy::Quoted;
using policy::Section;

constexpr const char* kConfigName = "config.toml";
/// Not to be seen in a mount, wherever the store is.
constexpr const char* kConfigInWorkspace = ".txfs/config.toml";

/// "~/a" or "/a".
bool IsPlainPath(std::string_view path) {
  return IsBelowHome(path) ||
         (path.starts_with('/') && IsBelowHome("~" + std::string(path)));
}

/// The same, or "a", below the workspace.
bool IsPathInConfig(std::string_view path) {
  return IsPlainPath(path) || (!path.starts_with('/') && path[0] != '~' &&
                               IsBelowHome("~/" + std::string(path)));
}

bool IsAssignment(std::string_view text) {
  return IsVariableName(text.substr(0, text.find('=')));
}

bool IsAnyText(std::string_view text) { return !text.empty(); }

std::vector<std::string> Absolute(const std::vector<std::string>& paths,
                                  const std::string& directory) {
  std::vector<std::string> absolute;
  for (const std::string& path : paths) {
    absolute.push_back(path.starts_with("~/") ? InHome(path)
                                              : MakeAbsolute(directory, path));
  }
  return absolute;
}

/// The text of `key`, if `parse` accepts it.
template <class Parse>
Result<std::optional<std::string>> ReadQuantity(const Section& section,
                                                std::string_view key,
                                                Parse parse,
                                                std::string_view expected) {
  if (!section.Has(key)) return std::nullopt;
  std::string text = TRY(section.Text(key, ""));
  const auto parsed = parse(text);
  if (parsed && *parsed != 0) return text;
  return section.Wrong(key, "is " + Quoted(text), expected);
}

Result<std::optional<uint64_t>> ReadCount(const Section& section,
                                          std::string_view key, int64_t most) {
  const policy::Node* node = section.Get(key);
  if (node == nullptr) return std::nullopt;
  const auto number = node->AsInteger();
  if (number && *number >= 1 && *number <= most) {
    return static_cast<uint64_t>(*number);
  }
  return section.Wrong(key, "is no such number",
                       "a number from 1 to " + std::to_string(most));
}

Result<std::optional<bool>> ReadFlag(const Section& section,
                                     std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  return TRY(section.Flag(key, false));
}

Result<std::optional<std::string>> ReadName(const Section& section,
                                            std::string_view key,
                                            bool (*is_valid)(std::string_view),
                                            std::string_view expected) {
  if (!section.Has(key)) return std::nullopt;
  std::string text = TRY(section.Text(key, ""));
  TRY(section.CheckPlain(key, text, policy::kMaxPattern));
  if (is_valid(text)) return text;
  return section.Wrong(key, "is " + Quoted(text), expected);
}

/// What the files of users and of workspaces have in common.
Status ReadCommon(const Section& section, RunConfig& config) {
  constexpr std::string_view kTime = "a time, such as \"10m\"";
  config.timeout = TRY(ReadQuantity(section, "timeout", ParseDuration, kTime));
  config.cpu_time =
      TRY(ReadQuantity(section, "cpu_time", ParseDuration, kTime));
  constexpr std::string_view kSize = "a size, such as \"4G\"";
  config.memory = TRY(ReadQuantity(section, "memory", ParseSize, kSize));
  config.disk = TRY(ReadQuantity(section, "disk", ParseSize, kSize));
  config.pids = TRY(ReadCount(section, "pids", 1'000'000));
  config.files = TRY(ReadCount(section, "files", 1'000'000'000));
  config.strict = TRY(ReadFlag(section, "strict"));
  config.may_nest = TRY(ReadFlag(section, "nested"));
  config.home = TRY(ReadName(
      section, "home",
      [](std::string_view home) {
        return home == "cow" || home == "ro" || home == "rw";
      },
      "cow, ro or rw"));
  return {};
}

/// The table [run] of `root`, with its places; null: there is none.
Result<const policy::Node*> RunTable(const policy::Node& root,
                                     RunConfig& config) {
  const Section whole(config.file, "the configuration", root);
  TRY(whole.CheckKeys({"run"}));
  const policy::Node* node = whole.Get("run");
  if (node == nullptr) return nullptr;
  if (!node->is_table()) return whole.Wrong("run", "is no table", "[run]");
  for (const policy::Node& value : node->items) {
    const policy::Place place{config.file, value.line};
    config.places.emplace(value.key, place.ToString());
  }
  return node;
}

/// Why a workspace cannot have `key`; "": it can.
std::string_view WhyNotInWorkspace(std::string_view key) {
  if (key == "validate") return "runs a program";
  for (const char* other :
       {"show", "rw", "env", "profile", "on_success", "on_failure"}) {
    if (key == other) return "does not restrict a run";
  }
  return "";
}

Status CheckRestricts(const Section& section, const RunConfig& config) {
  constexpr std::string_view kOnly =
      "what restricts a run more than it is without: network = \"none\", home "
      "= "
      "\"cow\", timeout, memory, cpu_time, pids, disk, files, hide, strict = "
      "true, nested = "
      "false";
  for (const auto& [key, place] : config.places) {
    const std::string_view why = WhyNotInWorkspace(key);
    if (why.empty()) continue;
    return section.Wrong(key,
                         "in a workspace's own configuration is not allowed, "
                         "because it " +
                             std::string(why),
                         kOnly);
  }
  if (config.strict == false) {
    return section.Wrong("strict", "is false", kOnly);
  }
  if (config.may_nest == true) {
    return section.Wrong("nested", "is true", kOnly);
  }
  // A read-only home shows its sockets, a private copy of it does not.
  if (config.home && config.home != "cow") {
    return section.Wrong("home", "is " + Quoted(*config.home), kOnly);
  }
  if (config.network && config.network != "none") {
    return section.Wrong("network", "is " + Quoted(*config.network), kOnly);
  }
  return {};
}

/// Lowers `limit`, 0 being none, to `most`; returns whether it was higher.
bool Lower(uint64_t& limit, uint64_t most) {
  if (limit != 0 && limit <= most) return false;
  limit = most;
  return true;
}

/// What was accepted when the file was read.
uint64_t ValueOf(const Result<uint64_t>& parsed) { return parsed.value_or(0); }

/// What a sandbox enforces. `apply` notes a key if it changes something.
void RestrictSandbox(const RunConfig& workspace, RunArguments& arguments,
                     const std::function<void(std::string_view, bool)>& apply) {
  if (workspace.network) {
    apply("network", arguments.has_network || !arguments.network.empty());
    arguments.has_network = false;
    arguments.network.clear();
  }
  if (workspace.home) {
    const bool changes = arguments.home == "rw";
    if (changes) arguments.home = *workspace.home;
    apply("home", changes);
  }
  apply("hide", !workspace.hide.empty());
  std::ranges::copy(workspace.hide, std::back_inserter(arguments.hide));
  arguments.hide_always = workspace.hide;
  if (workspace.may_nest) apply("nested", arguments.may_nest);
  if (workspace.may_nest) arguments.may_nest = false;
}

}  // namespace

Result<RunConfig> ParseRunConfig(std::string_view text,
                                 const std::string& file) {
  RunConfig config;
  config.file = file;
  const policy::Node root = TRY(policy::ParseToml(text, config.file));
  const policy::Node* table = TRY(RunTable(root, config));
  if (table == nullptr) return config;
  const Section section(config.file, "[run]", *table);
  TRY(section.CheckKeys({"network", "home", "profile", "timeout", "memory",
                         "cpu_time", "pids", "disk", "files", "hide", "show",
                         "rw", "env", "validate", "on_success", "on_failure",
                         "strict", "nested"}));
  TRY(ReadCommon(section, config));
  config.network =
      TRY(ReadName(section, "network", IsAnyText, "what --network takes"));
  config.profile =
      TRY(ReadName(section, "profile", IsPlainName, "the name of a profile"));
  constexpr std::string_view kPath = "paths such as ~/a or /a/b";
  config.hide =
      Absolute(TRY(ReadWords(section, "hide", IsPlainPath, kPath)), "/");
  config.show =
      Absolute(TRY(ReadWords(section, "show", IsPlainPath, kPath)), "/");
  config.rw = Absolute(TRY(ReadWords(section, "rw", IsPlainPath, kPath)), "/");
  config.env = TRY(ReadWords(section, "env", IsAssignment,
                             "environment variables, as NAME or NAME=VALUE"));
  config.validators =
      TRY(ReadWords(section, "validate", IsAnyText, "commands"));
  config.on_success = TRY(ReadSettle(section, "on_success"));
  config.on_failure = TRY(ReadSettle(section, "on_failure"));
  return config;
}

Result<RunConfig> ParseWorkspaceRunConfig(std::string_view text,
                                          const std::string& file,
                                          const std::string& workspace) {
  RunConfig config;
  config.file = file;
  const policy::Node root = TRY(policy::ParseToml(text, config.file));
  const policy::Node* table = TRY(RunTable(root, config));
  if (table == nullptr) return config;
  const Section section(config.file, "[run]", *table);
  TRY(CheckRestricts(section, config));
  TRY(section.CheckKeys({"network", "home", "timeout", "memory", "cpu_time",
                         "pids", "disk", "files", "hide", "strict", "nested"}));
  TRY(ReadCommon(section, config));
  config.network = TRY(ReadName(section, "network", IsAnyText, "none"));
  config.hide = Absolute(
      TRY(ReadWords(section, "hide", IsPathInConfig,
                    "paths such as a/b in the workspace, ~/a or /a/b")),
      workspace);
  TRY(CheckRestricts(section, config));
  return config;
}

Result<RunConfig> ReadRunConfig() {
  const std::string path = ConfigDirectory() + "/" + kConfigName;
  const auto text = ReadConfigFile(path, "configuration");
  if (!text && text.error().code == ENOENT) return RunConfig();
  if (!text) return std::unexpected(text.error());
  return ParseRunConfig(*text, path);
}

Result<RunConfig> ReadWorkspaceRunConfig(const std::string& workspace) {
  const RealWorkspace real = TRY(ReachWorkspace(workspace));
  const policy::SourceFile source{
      .path = JoinPath(workspace, kConfigInWorkspace),
      .in_workspace = kConfigInWorkspace,
      .required = false,
      .what = "configuration"};
  const auto text = TRY(policy::ReadSource(source, real.base->get()));
  if (!text) return RunConfig();
  return ParseWorkspaceRunConfig(*text, source.path, workspace);
}

void Restrict(const RunConfig& workspace, RunArguments& arguments) {
  const auto apply = [&](std::string_view key, bool changes) {
    if (!changes) return;
    const auto place = workspace.places.find(key);
    arguments.configuration.push_back({std::string(key), place->second});
  };
  if (arguments.no_sandbox) {
    for (const char* key : {"network", "home", "hide", "nested"}) {
      const auto place = workspace.places.find(key);
      if (place == workspace.places.end()) continue;
      arguments.unenforced.push_back({key, place->second});
    }
  } else {
    RestrictSandbox(workspace, arguments, apply);
  }
  if (workspace.timeout) {
    apply("timeout", Lower(arguments.timeout_ms,
                           ValueOf(ParseDuration(*workspace.timeout))));
  }
  LimitValues& limits = arguments.limits;
  if (workspace.memory) {
    apply("memory",
          Lower(limits.memory, ValueOf(ParseSize(*workspace.memory))));
  }
  if (workspace.cpu_time) {
    apply("cpu_time",
          Lower(limits.cpu_ms, ValueOf(ParseDuration(*workspace.cpu_time))));
  }
  if (workspace.pids) apply("pids", Lower(limits.pids, *workspace.pids));
  if (workspace.disk) {
    apply("disk", Lower(limits.disk, ValueOf(ParseSize(*workspace.disk))));
  }
  if (workspace.files) apply("files", Lower(limits.files, *workspace.files));
  if (workspace.strict) apply("strict", !arguments.strict);
  if (workspace.strict) arguments.strict = true;
}

}  // namespace txfs::cli

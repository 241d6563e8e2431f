#include "cli/run/profile.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <set>

#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/builtin_profiles.h"
#include "cli/run/config_file.h"
#include "cli/run/network_names.h"
#include "journal/support/file.h"
#include "policy/section.h"

namespace txfs::cli {
namespace {

using policy::Section;

constexpr std::string_view kNoProfile = "none";
constexpr std::string_view kSuffix = ".toml";

bool IsHostName(std::string_view name) {
  return ParseHostName(name).has_value();
}

std::string ProfileDirectory() { return ConfigDirectory() + "/profiles"; }

std::string ProfileFile(std::string_view name) {
  return ProfileDirectory() + "/" + std::string(name) + std::string(kSuffix);
}

Result<Profile> ReadUsers(const std::string& name) {
  const std::string path = ProfileFile(name);
  const std::string text = TRY(ReadConfigFile(path, "profile"));
  return ParseProfile(name, text, path);
}

/// The names of the user's own profiles.
Result<std::vector<std::string>> NamesOfUsers() {
  std::vector<std::string> names;
  const std::string real = TRY(CheckWayToConfig(ProfileDirectory()));
  const auto files = ListNames(AT_FDCWD, real);
  if (!files) {
    if (files.error().code == ENOENT) return names;
    return Fail(files.error().code, "cannot read " + ProfileDirectory(),
                "it has your profiles, as files NAME.toml");
  }
  for (std::string name : *files) {
    if (!name.ends_with(kSuffix)) continue;
    name.resize(name.size() - kSuffix.size());
    if (IsPlainName(name) && name != kNoProfile) names.push_back(name);
  }
  return names;
}

Result<Profile> ReadBuiltin(const BuiltinProfile& builtin) {
  const std::string name(builtin.name);
  return ParseProfile(name, builtin.text, "built-in profile " + name);
}

Result<Profile> ProfileNamed(const std::string& name,
                             const std::vector<std::string>& of_user) {
  if (std::ranges::find(of_user, name) != of_user.end()) return ReadUsers(name);
  std::set<std::string> known(of_user.begin(), of_user.end());
  for (const BuiltinProfile& builtin : BuiltinProfiles()) {
    if (builtin.name == name) return ReadBuiltin(builtin);
    known.emplace(builtin.name);
  }
  return Fail(ErrorKind::kUsage, 0, "unknown profile " + name,
              "known are " + policy::Listed(known) +
                  "; one of your own is a file NAME.toml in " +
                  ProfileDirectory());
}

bool IsFor(const Profile& profile, const std::string& program) {
  return std::ranges::find(profile.programs, program) != profile.programs.end();
}

Result<std::optional<Profile>> ProfileFor(
    const std::string& program, const std::vector<std::string>& of_user) {
  std::optional<Profile> found;
  for (const std::string& name : of_user) {
    Profile profile = TRY(ReadUsers(name));
    if (!IsFor(profile, program)) continue;
    if (found) {
      return Fail(ErrorKind::kUsage, 0,
                  "the profiles " + found->name + " and " + name +
                      " are both for " + program,
                  "choose one with --profile");
    }
    found = std::move(profile);
  }
  if (found) return found;
  for (const BuiltinProfile& builtin : BuiltinProfiles()) {
    if (std::ranges::find(of_user, builtin.name) != of_user.end()) continue;
    // To parse them all takes longer than all else before a run begins.
    if (!builtin.text.contains('"' + program + '"')) continue;
    Profile profile = TRY(ReadBuiltin(builtin));
    if (IsFor(profile, program)) return profile;
  }
  return std::nullopt;
}

bool IsThere(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

Result<Profile> ParseProfile(const std::string& name, std::string_view text,
                             const std::string& file) {
  const policy::Node root = TRY(policy::ParseToml(text, file));
  const Section section(file, "the profile", root);
  TRY(section.CheckKeys({"programs", "keep", "show", "environment", "network",
                         "on_success", "on_failure", "nested"}));
  Profile profile;
  profile.name = name;
  constexpr std::string_view kPath = "paths below the home, such as ~/.tool";
  profile.programs = TRY(ReadWords(section, "programs", IsPlainName,
                                   "names of programs without a slash"));
  profile.keep = TRY(ReadWords(section, "keep", IsBelowHome, kPath));
  profile.show = TRY(ReadWords(section, "show", IsBelowHome, kPath));
  profile.environment = TRY(ReadWords(section, "environment", IsVariableName,
                                      "names of environment variables"));
  profile.network =
      TRY(ReadWords(section, "network", IsHostName,
                    "names of hosts, such as example.org or *.example.org"));
  profile.on_success = TRY(ReadSettle(section, "on_success"));
  profile.on_failure = TRY(ReadSettle(section, "on_failure"));
  profile.may_nest = TRY(section.Flag("nested", false));
  return profile;
}

Result<std::optional<Profile>> FindProfile(
    const std::optional<std::string>& wanted,
    const std::vector<std::string>& command) {
  if (wanted == kNoProfile) return std::nullopt;
  const std::vector<std::string> of_user = TRY(NamesOfUsers());
  if (wanted) return TRY(ProfileNamed(*wanted, of_user));
  // A program that comes with the workspace is not the one that it calls
  // itself.
  if (command.empty() || command[0].contains('/')) return std::nullopt;
  return ProfileFor(command[0], of_user);
}

void ApplyProfile(const Profile& profile, const Context& context,
                  RunArguments& arguments) {
  arguments.profile = profile.name;
  const auto is_hidden = [&](const std::string& path) {
    return std::ranges::any_of(arguments.hide, [&](const std::string& hidden) {
      return IsWithin(ResolvePath("/", path),
                      ResolvePath(context.directory, hidden));
    });
  };
  for (const std::string& below : profile.show) {
    const std::string path = InHome(below);
    if (!is_hidden(path)) arguments.show.push_back(path);
  }
  for (const std::string& below : profile.keep) {
    const std::string path = InHome(below);
    // Where the home is not copy-on-write, only what is there can be bound.
    const bool can_be = arguments.home == "cow" || IsThere(path);
    if (can_be && !is_hidden(path)) arguments.rw.push_back(path);
  }
  std::ranges::copy(profile.environment, std::back_inserter(arguments.env));
  arguments.network = profile.network;
  arguments.on_success = profile.on_success.value_or(arguments.on_success);
  arguments.on_failure = profile.on_failure.value_or(arguments.on_failure);
  arguments.may_nest = arguments.may_nest || profile.may_nest;
}

}  // namespace txfs::cli

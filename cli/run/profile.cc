#include "cli/run/profile.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <set>
#include <utility>

#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/builtin_profiles.h"
#include "cli/run/network_names.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"
#include "policy/section.h"

namespace txfs::cli {
namespace {

using policy::Quoted;
using policy::Section;

constexpr std::string_view kNoProfile = "none";
constexpr std::string_view kSuffix = ".toml";
/// Larger than any that somebody wrote.
constexpr size_t kMaxProfile = size_t{1} << 20;
constexpr size_t kMaxName = 64;

constexpr std::array<std::pair<std::string_view, Settle>, 3> kSettles{
    {{"commit", Settle::kCommit},
     {"keep", Settle::kKeep},
     {"discard", Settle::kDiscard}}};

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

/// Whether `name` can be that of a profile or a program.
bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
         name[0] != '-' && std::ranges::all_of(name, [](char c) {
           return IsWordCharacter(c) || c == '-' || c == '.' || c == '+';
         });
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, IsWordCharacter);
}

bool IsHostName(std::string_view name) {
  return ParseHostName(name).has_value();
}

/// "~/a/b": below the home, and not the home itself.
bool IsBelowHome(std::string_view path) {
  if (!path.starts_with("~/") || path.size() == 2) return false;
  path.remove_prefix(1);
  const std::string closed = std::string(path) + "/";
  return !closed.contains("//") && !closed.contains("/./") &&
         !closed.contains("/../");
}

/// The texts of `key`, each as `is_valid` accepts it.
Result<std::vector<std::string>> ReadWords(const Section& section,
                                           std::string_view key,
                                           bool (*is_valid)(std::string_view),
                                           std::string_view expected) {
  std::vector<std::string> words = TRY(section.Texts(key));
  for (const std::string& word : words) {
    TRY(section.CheckPlain(key, word, policy::kMaxPattern));
    if (!is_valid(word)) {
      return section.Wrong(key, "has " + Quoted(word), expected);
    }
  }
  return words;
}

Result<std::optional<Settle>> ReadSettle(const Section& section,
                                         std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  const std::string name = TRY(section.Text(key, ""));
  const auto settle = SettleNamed(name);
  if (settle) return settle;
  return section.Wrong(key, "is " + Quoted(name), "commit, keep or discard");
}

std::string ProfileDirectory() { return ConfigDirectory() + "/profiles"; }

std::string ProfileFile(std::string_view name) {
  return ProfileDirectory() + "/" + std::string(name) + std::string(kSuffix);
}

/// No run may be able to change `path`, nor a mount of another user hold it.
Result<std::string> CheckWayToProfile(const std::string& path) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  return WalkTo(path, [&](int fd) -> Status {
    const MountEntry* entry = MountOf(fd, table);
    if (entry == nullptr || !(entry->is_txfs() || entry->is_strangers())) {
      return {};
    }
    return Fail(EPERM,
                path + " lies in the mount at " + entry->mountpoint +
                    ", where programs can change profiles that they run with",
                "unmount it, or set XDG_CONFIG_HOME to a directory elsewhere");
  });
}

Status CheckOwnerOfProfile(int fd, const std::string& path) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, path);
  if (!IsOwnOrRoots(st.st_uid)) {
    return Fail(EPERM, "the profile " + path + " belongs to another user",
                "check its content, then make it yours with chown");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(EPERM, "the profile " + path + " is writable by other users",
                "check its content, then run chmod go-w on it");
  }
  return {};
}

Result<Profile> ReadUsers(const std::string& name) {
  const std::string path = ProfileFile(name);
  const std::string real = TRY(CheckWayToProfile(path));
  const auto fd = OpenFileBelow(AT_FDCWD, real, O_RDONLY);
  if (!fd && fd.error().code == EBADMSG) {
    return Fail(EPERM, "the profile " + path + " is not a regular file",
                "replace it with a regular file");
  }
  if (!fd) {
    return Fail(fd.error().code, "cannot read the profile " + path,
                "make it readable, or remove it");
  }
  TRY(CheckOwnerOfProfile(fd->get(), path));
  std::string text(kMaxProfile + 1, '\0');
  text.resize(TRY(ReadFully(
      fd->get(), 0, {reinterpret_cast<std::byte*>(text.data()), text.size()})));
  if (text.size() > kMaxProfile) {
    return Fail(EFBIG, "the profile " + path + " has more than 1 MiB",
                "make it shorter");
  }
  return ParseProfile(name, text, path);
}

/// The names of the user's own profiles.
Result<std::vector<std::string>> NamesOfUsers() {
  std::vector<std::string> names;
  const std::string real = TRY(CheckWayToProfile(ProfileDirectory()));
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

/// "~/a" with the home's path; of a home that is not known, none.
std::vector<std::string> InHome(const std::vector<std::string>& paths) {
  std::vector<std::string> absolute;
  const std::string home = HomeDirectory();
  for (const std::string& path : paths) {
    absolute.push_back(JoinPath(home, path.substr(2)));
  }
  return absolute;
}

bool IsThere(const std::string& path) {
  return ::access(path.c_str(), F_OK) == 0;
}

}  // namespace

std::optional<Settle> SettleNamed(std::string_view name) {
  for (const auto& [known, settle] : kSettles) {
    if (known == name) return settle;
  }
  return std::nullopt;
}

Result<Profile> ParseProfile(const std::string& name, std::string_view text,
                             const std::string& file) {
  const toml::table root = TRY(policy::ParseToml(text, file));
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
  for (const std::string& path : InHome(profile.show)) {
    if (!is_hidden(path)) arguments.show.push_back(path);
  }
  for (const std::string& path : InHome(profile.keep)) {
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

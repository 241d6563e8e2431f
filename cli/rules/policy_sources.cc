#include "cli/rules/policy_sources.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr const char* kSystemFile = "/etc/txfs/policy.toml";
/// Not to be seen in a mount, wherever the store is.
constexpr const char* kWorkspaceFile = ".txfs/policy.toml";

policy::SourceFile FileAt(const std::string& path, const std::string& workspace,
                          bool required) {
  return {.path = path,
          .in_workspace = RelativeTo(path, workspace).value_or(""),
          .required = required};
}

/// The error for `what` at `path`: users of the mount can change `where`.
std::unexpected<Error> IsInReach(const std::string& what,
                                 const std::string& path,
                                 const std::string& where) {
  return Fail(EPERM,
              what + " " + path + " lies in " + where +
                  ", where the programs that it restricts can change it",
              "move it outside of the mount and its workspace");
}

/// Nothing on the way to the policy `path` lies in the workspace, but perhaps
/// the file itself.
Status CheckWayToPolicy(const std::string& path, const std::string& workspace,
                        bool may_be_inside) {
  TRY(CheckWay("/", path));
  TRY(WalkTo(path, [&](int fd) -> Status {
    struct stat st{};
    const bool is_link = ::fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
    if (may_be_inside && !is_link) return {};
    if (!IsWithin(PathOfFd(fd), workspace)) return {};
    return IsInReach("the policy", path, "the workspace " + workspace);
  }));
  return {};
}

/// Nothing on the way to `path` lies in a txfs mount, in `mountpoint`, or in
/// `workspace` unless that is empty.
Status CheckPathOutOfReach(const std::string& what, const std::string& path,
                           const std::string& mountpoint,
                           const std::string& workspace) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  TRY(WalkTo(path, [&](int fd) -> Status {
    const MountEntry* entry = MountOf(fd, table);
    if (entry != nullptr && (entry->is_txfs() || entry->is_strangers())) {
      return IsInReach(what, path, "the mount at " + entry->mountpoint);
    }
    const std::string place = PathOfFd(fd);
    if (IsWithin(place, mountpoint)) {
      return IsInReach(what, path, "the mount at " + mountpoint);
    }
    if (workspace.empty() || !IsWithin(place, workspace)) return {};
    return IsInReach(what, path, "the workspace " + workspace);
  }));
  return {};
}

}  // namespace

Result<policy::Sources> PolicySources(const std::string& workspace,
                                      const PolicyChoice& choice) {
  policy::Sources sources{
      .builtin = choice.builtin, .without = choice.without, .files = {}};
  const auto add = [&](const std::string& path, bool chosen) -> Status {
    TRY(CheckWayToPolicy(path, workspace, chosen));
    sources.files.push_back(FileAt(ResolvePath("/", path), workspace, chosen));
    return {};
  };
  TRY(add(kSystemFile, false));
  TRY(add(ConfigDirectory() + "/policy.toml", false));
  sources.files.push_back(
      FileAt(JoinPath(workspace, kWorkspaceFile), workspace, false));
  for (const std::string& path : choice.files) TRY(add(path, true));
  return sources;
}

policy::Sources SourcesOfUser() {
  return {.builtin = true,
          .files = {
              {.path = kSystemFile, .required = false},
              {.path = ConfigDirectory() + "/policy.toml", .required = false}}};
}

Status CheckOutOfReach(const policy::Sources& sources, const Reach& reach) {
  for (const policy::SourceFile& file : sources.files) {
    if (!file.in_workspace.empty()) continue;
    TRY(CheckPathOutOfReach("the policy", file.path, reach.mountpoint, ""));
  }
  return {};
}

Status CheckHookOutOfReach(const policy::Policy* policy, const Reach& reach) {
  if (policy == nullptr || !policy->settings().hook) return {};
  const std::vector<std::string>& command = policy->settings().hook->command;
  for (const std::string& word : command) {
    if (!word.starts_with('/')) continue;
    TRY(CheckPathOutOfReach("the hook", word, reach.mountpoint,
                            reach.workspace));
  }
  if (::access(command[0].c_str(), X_OK) == 0) return {};
  return Fail(errno, "cannot run the hook " + command[0],
              "[hook] names the program, by an absolute path");
}

}  // namespace txfs::cli

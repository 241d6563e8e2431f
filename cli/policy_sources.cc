#include "cli/policy_sources.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <memory>

#include "cli/paths.h"
#include "cli/runtime_dir.h"
#include "fs/mount_table.h"

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

}  // namespace

policy::Sources PolicySources(const std::string& workspace,
                              const PolicyChoice& choice) {
  policy::Sources sources{
      .builtin = choice.builtin, .without = choice.without, .files = {}};
  for (const std::string& path :
       {ResolvePath("/", kSystemFile),
        ResolvePath("/", ConfigDirectory() + "/policy.toml"),
        JoinPath(workspace, kWorkspaceFile)}) {
    sources.files.push_back(FileAt(path, workspace, false));
  }
  for (const std::string& path : choice.files) {
    sources.files.push_back(FileAt(path, workspace, true));
  }
  return sources;
}

namespace {

Status CheckPlace(const std::string& what, const std::string& path,
                  const std::string& mountpoint) {
  const auto entry = FindAnyTxfsMount(path);
  if (!entry && !IsWithin(path, mountpoint)) return {};
  return Fail(EPERM,
              what + " " + path + " lies in the mount at " +
                  (entry ? entry->mountpoint : mountpoint) +
                  ", where it can be changed by those whom it is for",
              "keep it outside of what is mounted");
}

/// Neither `path` nor what it leads to.
Status CheckPathOutOfReach(const std::string& what, const std::string& path,
                           const std::string& mountpoint) {
  TRY(CheckPlace(what, path, mountpoint));
  const std::unique_ptr<char, decltype(&std::free)> real(
      ::realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return {};
  return CheckPlace(what, real.get(), mountpoint);
}

}  // namespace

Status CheckOutOfReach(const policy::Sources& sources,
                       const std::string& mountpoint) {
  for (const policy::SourceFile& file : sources.files) {
    if (!file.in_workspace.empty() || ::access(file.path.c_str(), F_OK) != 0) {
      continue;
    }
    TRY(CheckPathOutOfReach("the policy", file.path, mountpoint));
  }
  return {};
}

Status CheckHookOutOfReach(const policy::Policy* policy,
                           const std::string& mountpoint) {
  if (policy == nullptr || !policy->settings().hook) return {};
  const std::vector<std::string>& command = policy->settings().hook->command;
  for (const std::string& word : command) {
    if (!word.starts_with('/')) continue;
    TRY(CheckPathOutOfReach("the hook", word, mountpoint));
  }
  if (::access(command[0].c_str(), X_OK) == 0) return {};
  return Fail(errno, "cannot run the hook " + command[0],
              "[hook] names the program, by an absolute path");
}

}  // namespace txfs::cli

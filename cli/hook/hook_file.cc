#include "cli/hook/hook_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxConfiguration = size_t{4} << 20;

}  // namespace

std::string HookFile::path() const { return JoinPath(directory, name); }

HookFile FileOf(const HookHost& host, HookScope scope,
                const std::string& directory) {
  if (scope == HookScope::kProject) {
    return {directory, std::string(host.project_file)};
  }
  const char* given =
      host.variable == nullptr ? nullptr : std::getenv(host.variable);
  if (given != nullptr && given[0] == '/') {
    return {given, std::string(host.user_file)};
  }
  return {HomeDirectory(), JoinPath(std::string(host.user_directory),
                                    std::string(host.user_file))};
}

Result<std::optional<std::string>> ReadHookFile(const HookFile& file) {
  const auto directory =
      OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY);
  if (!directory && directory.error().code == ENOENT) {
    return std::optional<std::string>();
  }
  if (!directory) {
    return Fail(directory.error().code, "cannot open " + file.directory);
  }
  auto text = ReadWholeFile(directory->get(), file.name, kMaxConfiguration);
  if (text) return std::optional(std::move(*text));
  if (text.error().code == ENOENT) return std::optional<std::string>();
  return Fail(text.error().code,
              "cannot read " + file.path() +
                  ", which must be a file of at most 4 MiB without symbolic "
                  "links on the way",
              "in an empty directory, `txfs hook install HOST --project "
              "--dry-run` prints what to insert");
}

namespace {

/// Makes the directories of `name` in `directory`, and follows no link there.
Status MakeParents(int directory, const std::string& name, mode_t mode) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const std::string parent = name.substr(0, slash);
    const auto there = StatBelow(directory, parent);
    if (there && S_ISDIR(there->st_mode)) continue;
    TRY(MakeDirectoryAt(directory, parent, mode));
  }
  return {};
}

}  // namespace

Status WriteHookFile(const HookFile& file, HookScope scope,
                     const std::string& text) {
  const bool is_shared = scope == HookScope::kProject;
  if (!is_shared) TRY(MakeDirectories(file.directory));
  const UniqueFd directory =
      TRY(OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY));
  TRY(MakeParents(directory.get(), file.name, is_shared ? 0755 : 0700));
  const auto there = StatBelow(directory.get(), file.name);
  const mode_t fresh = is_shared ? 0644 : 0600;
  return ReplaceFile(directory.get(), file.name, text,
                     there ? there->st_mode & 0777 : fresh);
}

Status RemoveHookFile(const HookFile& file) {
  const UniqueFd directory =
      TRY(OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY));
  std::string name = file.name;
  const size_t last = name.rfind('/');
  const std::string parent =
      last == std::string::npos ? "." : name.substr(0, last);
  const UniqueFd holder = TRY(OpenDirectoryBelow(directory.get(), parent));
  if (::unlinkat(holder.get(), name.substr(last + 1).c_str(), 0) != 0) {
    return Fail(errno, "cannot remove " + file.path());
  }
  for (size_t slash = last; slash != std::string::npos;) {
    name.resize(slash);
    slash = name.rfind('/');
    const auto above = OpenDirectoryBelow(
        directory.get(),
        slash == std::string::npos ? "." : name.substr(0, slash));
    const std::string base =
        slash == std::string::npos ? name : name.substr(slash + 1);
    if (!above || ::unlinkat(above->get(), base.c_str(), AT_REMOVEDIR) != 0) {
      break;
    }
  }
  return {};
}

}  // namespace txfs::cli

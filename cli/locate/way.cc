#include "cli/locate/way.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <deque>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "cli/locate/reach_daemon.h"
#include "cli/locate/trust.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

std::string UserOf(const MountEntry& entry) {
  return entry.owner ? "user " + std::to_string(*entry.owner) : "another user";
}

std::unexpected<Error> OfAnotherUser(const MountEntry& entry) {
  const std::string mountpoint = QuoteShell(entry.mountpoint);
  const std::string hint =
      ::geteuid() == 0
          ? "`txfs --as-owner` acts as the user who made it, `umount -l " +
                mountpoint + "` removes it"
          : "only the user who mounted it may control it: run as that user";
  return Fail(EPERM,
              entry.mountpoint + " is a mount of " + UserOf(entry) +
                  ", whose daemon txfs does not trust",
              hint);
}

/// The components of `path`.
std::deque<std::string> Components(std::string_view path) {
  std::deque<std::string> parts;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    if (end != 0) parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

/// Where the symbolic link `fd` leads; "" of anything else.
std::string TargetOf(int fd) {
  std::string target(PATH_MAX, '\0');
  const ssize_t size = ::readlinkat(fd, "", target.data(), target.size());
  target.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return target;
}

/// Judges the mounts on one way, each once.
class MountsOnWay {
 public:
  explicit MountsOnWay(std::vector<MountEntry> table)
      : table_(std::move(table)) {}

  Status Check(int fd) {
    const MountEntry* entry = MountOf(fd, table_);
    if (entry == nullptr || !seen_.insert(entry).second) return {};
    if (entry->is_strangers()) return OfAnotherUser(*entry);
    return entry->is_own() ? CheckAnswers(*entry) : Status();
  }

  /// Whether there is nothing to judge anywhere.
  [[nodiscard]] bool empty() const {
    return std::ranges::none_of(table_, [](const MountEntry& entry) {
      return entry.is_own() || entry.is_strangers();
    });
  }

 private:
  const std::vector<MountEntry> table_;
  std::set<const MountEntry*> seen_;
};

Status CheckLink(int fd, const std::string& path) {
  // Whatever else is there is not asked: its daemon may be dead.
  const std::string target = TargetOf(fd);
  if (target.empty()) return {};
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, path);
  if (IsOwnOrRoots(st.st_uid)) return {};
  return Fail(EPERM,
              "the path " + path + " goes through " + PathOfFd(fd) +
                  ", a symbolic link of " + UserName(st.st_uid) + " to " +
                  target,
              "name the directory itself");
}

/// The path of `rest` below `part` in the directory `at`, as text.
std::string PathBeyond(int at, const std::string& part,
                       const std::deque<std::string>& rest) {
  std::filesystem::path path = PathOfFd(at);
  path /= part;
  for (const std::string& next : rest) path /= next;
  return path.lexically_normal().native();
}

}  // namespace

Result<std::string> WalkTo(const std::string& path,
                           const std::function<Status(int)>& visit) {
  constexpr int kMaxLinks = 40;
  std::deque<std::string> parts = Components(path);
  UniqueFd at = TRY(OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
  for (int links = 0; !parts.empty();) {
    const std::string part = std::move(parts.front());
    parts.pop_front();
    auto next = OpenAt(at.get(), part, O_PATH | O_NOFOLLOW);
    // It is for the command to say what is missing.
    if (!next) return PathBeyond(at.get(), part, parts);
    TRY(visit(next->get()));
    const std::string target = TargetOf(next->get());
    if (target.empty()) {
      at = std::move(*next);
      continue;
    }
    if (++links > kMaxLinks) return PathBeyond(at.get(), part, parts);
    if (target.starts_with('/')) {
      at = TRY(OpenAt(AT_FDCWD, "/", O_PATH | O_DIRECTORY));
    }
    const auto more = Components(target);
    parts.insert(parts.begin(), more.begin(), more.end());
  }
  return PathOfFd(at.get());
}

Status CheckWay(const std::string& directory, const std::string& path) {
  MountsOnWay mounts(TRY(ReadMountTable()));
  if (mounts.empty()) return {};
  TRY(WalkTo(MakeAbsolute(directory, path),
             [&](int fd) { return mounts.Check(fd); }));
  return {};
}

Result<std::string> ResolveDirectory(const std::string& directory,
                                     const std::string& path) {
  const std::string full = MakeAbsolute(directory, path);
  MountsOnWay mounts(TRY(ReadMountTable()));
  return WalkTo(full, [&](int fd) -> Status {
    TRY(mounts.Check(fd));
    return CheckLink(fd, full);
  });
}

}  // namespace txfs::cli

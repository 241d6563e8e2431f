#include "fs/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdio>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>

namespace txfs {
namespace {

struct Target {
  std::string_view dir;
  dev_t dev;
};

bool Matches(const Target& target, std::string_view path) {
  if (target.dir.empty() || target.dir == "/") return true;
  return path.starts_with(target.dir) &&
         (path.size() == target.dir.size() || path[target.dir.size()] == '/' ||
          path.substr(target.dir.size()) == " (deleted)");
}

/// Whether the /proc link `link` leads to the target. An empty mask and
/// DONT_SYNC: FUSE then tells its device number to anybody, without asking the
/// daemon.
bool LinkMatches(const Target& target, const std::string& link) {
  struct statx info{};
  if (::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, 0,
              &info) != 0 ||
      ::makedev(info.stx_dev_major, info.stx_dev_minor) != target.dev) {
    return false;
  }
  std::array<char, PATH_MAX> path;
  const ssize_t n = ::readlink(link.c_str(), path.data(), path.size());
  return n > 0 && Matches(target, {path.data(), static_cast<size_t>(n)});
}

struct CloseDir {
  void operator()(DIR* stream) const { ::closedir(stream); }
};
struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<int> NumbersIn(const std::string& dir) {
  std::vector<int> numbers;
  const std::unique_ptr<DIR, CloseDir> stream(::opendir(dir.c_str()));
  if (!stream) return numbers;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    int number = 0;
    const char* end = name.data() + name.size();
    if (std::from_chars(name.data(), end, number).ptr == end) {
      numbers.push_back(number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

/// "FROM-TO PERMISSIONS OFFSET MAJOR:MINOR INODE   PATH"
bool MapLineMatches(const Target& target, const char* line) {
  unsigned major_number = 0;
  unsigned minor_number = 0;
  int path = 0;
  if (std::sscanf(line, "%*s %*s %*s %x:%x %*s %n", &major_number,
                  &minor_number, &path) < 2 ||
      path == 0 || ::makedev(major_number, minor_number) != target.dev) {
    return false;
  }
  std::string_view text = line + path;
  if (text.ends_with('\n')) text.remove_suffix(1);
  return Matches(target, text);
}

bool AnyMapMatches(const Target& target, const std::string& proc) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      std::fopen((proc + "/maps").c_str(), "re"));
  if (!file) return false;
  std::array<char, PATH_MAX + 128> line;
  while (std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    if (MapLineMatches(target, line.data())) return true;
  }
  return false;
}

std::optional<std::string> FindUse(const Target& target,
                                   const std::string& proc) {
  for (const char* link : {"cwd", "root", "exe"}) {
    if (LinkMatches(target, proc + "/" + link)) return link;
  }
  for (const int fd : NumbersIn(proc + "/fd")) {
    const std::string number = std::to_string(fd);
    if (LinkMatches(target, proc + "/fd/" + number)) return "fd " + number;
  }
  if (AnyMapMatches(target, proc)) return "map";
  return std::nullopt;
}

std::string CommOf(const std::string& proc) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      std::fopen((proc + "/comm").c_str(), "re"));
  std::array<char, 64> text{};
  if (!file || std::fgets(text.data(), text.size(), file.get()) == nullptr) {
    return "?";
  }
  std::string comm = text.data();
  if (comm.ends_with('\n')) comm.pop_back();
  return comm;
}

}  // namespace

std::vector<ProcessRef> ProcessesUsing(const std::string& dir, dev_t dev) {
  const Target target{dir, dev};
  std::vector<ProcessRef> found;
  for (const pid_t pid : NumbersIn("/proc")) {
    if (pid == ::getpid()) continue;
    const std::string proc = "/proc/" + std::to_string(pid);
    if (auto use = FindUse(target, proc)) {
      found.push_back({pid, CommOf(proc), std::move(*use)});
    }
  }
  const pid_t parent = ::getppid();
  std::ranges::sort(found, {}, [parent](const ProcessRef& p) {
    return std::tuple(p.pid != parent, p.pid);
  });
  return found;
}

}  // namespace txfs

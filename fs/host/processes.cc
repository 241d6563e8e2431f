#include "fs/host/processes.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

#include "fs/host/mount_table.h"
#include "journal/support/file.h"

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

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

std::vector<int> NumbersIn(const std::string& dir) {
  std::vector<int> numbers;
  const DirStream stream(::opendir(dir.c_str()));
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
std::optional<Mapping> ParseMapping(const char* line) {
  std::array<char, 64> range;
  std::array<char, 8> mode;
  unsigned major_number = 0;
  unsigned minor_number = 0;
  unsigned long ino = 0;
  int path = 0;
  if (std::sscanf(line, "%63s %7s %*s %x:%x %lu %n", range.data(), mode.data(),
                  &major_number, &minor_number, &ino, &path) < 5) {
    return std::nullopt;
  }
  const std::string_view permissions(mode.data());
  std::string_view text = path == 0 ? "" : line + path;
  if (text.ends_with('\n')) text.remove_suffix(1);
  return Mapping{.range = range.data(),
                 .is_shared = permissions.ends_with('s'),
                 .may_store = permissions.substr(0, 2).ends_with('w'),
                 .device = ::makedev(major_number, minor_number),
                 .ino = ino,
                 .path = std::string(text)};
}

/// struct procmap_query of linux/fs.h since Linux 6.11; Debian 12 has it not.
struct MappingQuery {
  uint64_t size = sizeof(MappingQuery);
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t start = 0, end = 0, mode = 0, page_size = 0, offset = 0, ino = 0;
  uint32_t major_number = 0, minor_number = 0;
  uint32_t path_size = 0, build_id_size = 0;
  uint64_t path = 0, build_id = 0;
};
static_assert(sizeof(MappingQuery) == 104);
constexpr unsigned long kQueryMapping = _IOWR('f', 17, MappingQuery);
constexpr uint64_t kWritable = 0x02, kShared = 0x08, kOrNext = 0x10,
                   kOfAFile = 0x20;

std::string RangeOf(const MappingQuery& query) {
  std::array<char, 40> range;
  std::snprintf(range.data(), range.size(), "%" PRIx64 "-%" PRIx64, query.start,
                query.end);
  return range.data();
}

/// Whether the kernel can be asked.
bool QueryStoringMappings(const UniqueFd& maps,
                          const std::function<bool(const Mapping&)>& visit) {
  std::array<char, PATH_MAX + 1> path;
  MappingQuery query;
  for (;;) {
    query.flags = kWritable | kShared | kOrNext | kOfAFile;
    query.path = reinterpret_cast<uintptr_t>(path.data());
    query.path_size = path.size();
    if (::ioctl(maps.get(), kQueryMapping, &query) != 0) {
      return errno != ENOTTY && errno != ENAMETOOLONG;
    }
    const Mapping mapping{
        .range = RangeOf(query),
        .is_shared = true,
        .may_store = true,
        .device = ::makedev(query.major_number, query.minor_number),
        .ino = query.ino,
        .path = query.path_size == 0 ? "" : path.data()};
    if (!visit(mapping)) return true;
    query.address = query.end;
  }
}

bool AnyMapMatches(const Target& target, pid_t pid) {
  bool found = false;
  ForEachMapping(pid, [&](const Mapping& mapping) {
    found = mapping.device == target.dev && Matches(target, mapping.path);
    return !found;
  });
  return found;
}

std::string ProcOf(pid_t pid) { return "/proc/" + std::to_string(pid); }

std::optional<std::string> FindUse(const Target& target, pid_t pid) {
  const std::string proc = ProcOf(pid);
  for (const char* link : {"cwd", "root", "exe"}) {
    if (LinkMatches(target, proc + "/" + link)) return link;
  }
  for (const int fd : NumbersIn(proc + "/fd")) {
    const std::string number = std::to_string(fd);
    if (LinkMatches(target, proc + "/fd/" + number)) return "fd " + number;
  }
  if (AnyMapMatches(target, pid)) return "map";
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

std::vector<ProcessRef> ProcessesMounting(dev_t dev) {
  std::vector<ProcessRef> found;
  struct stat space{};
  if (::stat("/proc/self/ns/mnt", &space) != 0) return found;
  std::set<ino_t> known{space.st_ino};
  for (const pid_t pid : ListProcesses()) {
    const bool is_other =
        ::stat((ProcOf(pid) + "/ns/mnt").c_str(), &space) == 0 &&
        known.insert(space.st_ino).second;
    if (!is_other) continue;
    const auto table = ReadMountTable(std::to_string(pid));
    const auto is_it = [dev](const MountEntry& mount) {
      return mount.device() == dev;
    };
    if (table && std::ranges::any_of(*table, is_it)) {
      found.push_back({pid, CommOf(ProcOf(pid)), "mount namespace"});
    }
  }
  return found;
}

bool HasDirectoryOn(pid_t pid, dev_t device) {
  const Target target{.dir = "", .dev = device};
  return LinkMatches(target, ProcOf(pid) + "/cwd") ||
         LinkMatches(target, ProcOf(pid) + "/root");
}

std::vector<pid_t> ListProcesses() { return NumbersIn("/proc"); }

void ForEachMapping(pid_t pid,
                    const std::function<bool(const Mapping&)>& visit) {
  const std::unique_ptr<std::FILE, CloseFile> file(
      std::fopen((ProcOf(pid) + "/maps").c_str(), "re"));
  if (!file) return;
  std::array<char, PATH_MAX + 128> line;
  while (std::fgets(line.data(), line.size(), file.get()) != nullptr) {
    const auto mapping = ParseMapping(line.data());
    if (mapping && !visit(*mapping)) return;
  }
}

void ForEachStoringMapping(pid_t pid,
                           const std::function<bool(const Mapping&)>& visit) {
  const auto maps = OpenAt(AT_FDCWD, ProcOf(pid) + "/maps", O_RDONLY);
  if (!maps || QueryStoringMappings(*maps, visit)) return;
  ForEachMapping(pid, [&](const Mapping& mapping) {
    const bool is_meant = mapping.is_shared && mapping.may_store;
    return !is_meant || mapping.ino == 0 || visit(mapping);
  });
}

std::vector<ProcessRef> ProcessesUsing(const std::string& dir, dev_t dev) {
  const Target target{dir, dev};
  std::vector<ProcessRef> found;
  for (const pid_t pid : ListProcesses()) {
    if (pid == ::getpid()) continue;
    if (auto use = FindUse(target, pid)) {
      found.push_back({pid, CommOf(ProcOf(pid)), std::move(*use)});
    }
  }
  const pid_t parent = ::getppid();
  std::ranges::sort(found, {}, [parent](const ProcessRef& p) {
    return std::tuple(p.pid != parent, p.pid);
  });
  return found;
}

}  // namespace txfs

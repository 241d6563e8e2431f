#include "cli/mappings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <system_error>

#include "journal/base/file.h"

namespace txfs::cli {
namespace {

namespace stdfs = std::filesystem;

/// A mapping as /proc/PID/maps shows it, "FROM-TO rw-s OFFSET MAJ:MIN INO
/// PATH".
struct Mapping {
  std::string range;
  bool is_shared = false;
  bool may_store = false;
  dev_t device = 0;
  ino_t ino = 0;
  std::string path;
};

Mapping Parse(const std::string& line) {
  Mapping mapping;
  char range[64] = "";
  char mode[8] = "";
  unsigned major = 0;
  unsigned minor = 0;
  uint64_t ino = 0;
  int rest = 0;
  const int fields =
      std::sscanf(line.c_str(), "%63s %7s %*x %x:%x %" SCNu64 " %n", range,
                  mode, &major, &minor, &ino, &rest);
  if (fields < 5) return mapping;
  mapping.range = range;
  mapping.may_store = mode[1] == 'w';
  mapping.is_shared = mode[3] == 's';
  mapping.device = makedev(major, minor);
  mapping.ino = ino;
  if (rest > 0) mapping.path = line.substr(static_cast<size_t>(rest));
  return mapping;
}

/// Whatever leads to the file that is mapped.
UniqueFd OpenMapped(const std::string& process, const Mapping& mapping) {
  for (const std::string& path :
       {process + "/map_files/" + mapping.range,
        process + "/root" + mapping.path, mapping.path}) {
    auto fd = OpenAt(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
    struct stat st{};
    if (fd && ::fstat(fd->get(), &st) == 0 && st.st_dev == mapping.device &&
        st.st_ino == mapping.ino) {
      return std::move(*fd);
    }
  }
  return {};
}

void FlushProcess(const std::string& process, dev_t device,
                  std::set<ino_t>& flushed) {
  std::ifstream maps(process + "/maps");
  for (std::string line; std::getline(maps, line);) {
    const Mapping mapping = Parse(line);
    if (!mapping.is_shared || !mapping.may_store || mapping.device != device) {
      continue;
    }
    if (flushed.contains(mapping.ino)) continue;
    const UniqueFd file = OpenMapped(process, mapping);
    // What cannot be written back is the process's to be told of.
    if (file.valid()) std::ignore = ::fsync(file.get());
    flushed.insert(mapping.ino);
  }
}

}  // namespace

void FlushMappings(dev_t device) {
  std::set<ino_t> flushed;
  std::error_code error;
  stdfs::directory_iterator entries("/proc", error);
  for (; !error && entries != stdfs::directory_iterator();
       entries.increment(error)) {
    const std::string name = entries->path().filename().native();
    const bool is_process =
        !name.empty() &&
        std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    if (is_process) FlushProcess("/proc/" + name, device, flushed);
  }
}

}  // namespace txfs::cli

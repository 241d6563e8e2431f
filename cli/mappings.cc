#include "cli/mappings.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <string>
#include <tuple>

#include "fs/processes.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

/// Whatever leads to the file that is mapped.
UniqueFd OpenMapped(pid_t pid, const Mapping& mapping) {
  const std::string process = "/proc/" + std::to_string(pid);
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

}  // namespace

void FlushMappings(dev_t device) {
  std::set<ino_t> flushed;
  for (const pid_t pid : ListProcesses()) {
    ForEachStoringMapping(pid, [&](const Mapping& mapping) {
      if (mapping.device != device || flushed.contains(mapping.ino)) {
        return true;
      }
      const UniqueFd file = OpenMapped(pid, mapping);
      if (!file.valid()) return true;
      // What cannot be written back is the process's to be told of.
      std::ignore = ::fsync(file.get());
      flushed.insert(mapping.ino);
      return true;
    });
  }
}

}  // namespace txfs::cli

#include "cli/locate/mappings.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <functional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "fs/host/processes.h"
#include "journal/support/file.h"

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

struct MappedFile {
  pid_t pid = 0;
  Mapping mapping;
};

std::vector<MappedFile> FilesMappedFrom(dev_t device) {
  std::vector<MappedFile> files;
  for (const pid_t pid : ListProcesses()) {
    ForEachStoringMapping(pid, [&](const Mapping& mapping) {
      if (mapping.device == device) files.push_back({pid, mapping});
      return true;
    });
  }
  return files;
}

void Flush(const std::vector<MappedFile>& files) {
  std::set<ino_t> flushed;
  for (const auto& [pid, mapping] : files) {
    if (flushed.contains(mapping.ino)) continue;
    const UniqueFd file = OpenMapped(pid, mapping);
    if (!file.valid()) continue;
    // What cannot be written back is the process's to be told of.
    std::ignore = ::fsync(file.get());
    flushed.insert(mapping.ino);
  }
}

/// Runs `work` in a process that nobody has to wait for. Returns the end of a
/// pipe whose other one it has.
Result<UniqueFd> RunApart(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return Fail(errno, "pipe");
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const pid_t between = ::fork();
  if (between < 0) return Fail(errno, "fork");
  if (between == 0) {
    if (::fork() != 0) ::_exit(0);
    // Nor does whoever reads our output, or waits for a lock of ours.
    constexpr int kKept = 0;
    ::dup2(theirs.get(), kKept);
    ::close_range(kKept + 1, ~0U, 0);
    work();
    ::_exit(0);
  }
  while (::waitpid(between, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ours;
}

}  // namespace

Result<MappingsFlush> MappingsFlush::Start(const std::string& mountpoint) {
  const auto mount = OpenAt(AT_FDCWD, mountpoint, O_RDONLY | O_DIRECTORY);
  struct stat st{};
  // A dead mount is for others to tell.
  if (!mount || ::fstat(mount->get(), &st) != 0) return MappingsFlush({});
  std::ignore = ::syncfs(mount->get());
  const std::vector<MappedFile> files = FilesMappedFrom(st.st_dev);
  if (files.empty()) return MappingsFlush({});
  return MappingsFlush(TRY(RunApart([&] { Flush(files); })));
}

bool MappingsFlush::Await(int timeout_ms) const {
  pollfd fd{.fd = end_.get(), .events = POLLIN, .revents = 0};
  return !end_.valid() || ::poll(&fd, 1, timeout_ms) > 0;
}

}  // namespace txfs::cli

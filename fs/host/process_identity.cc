#include "fs/host/process_identity.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "fs/host/mount_table.h"
#include "fs/host/processes.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// What is looked for stands near the beginning.
constexpr size_t kProcBytes = 8192;
/// More than any machine has of generations that are alive.
constexpr int kMaxAncestors = 1000;

std::string ReadProc(pid_t pid, const char* file) {
  const auto fd =
      OpenAt(AT_FDCWD, "/proc/" + std::to_string(pid) + "/" + file, O_RDONLY);
  std::string text(kProcBytes, '\0');
  const auto bytes = std::as_writable_bytes(std::span(text.data(), kProcBytes));
  const auto n = fd ? ReadFully(fd->get(), 0, bytes) : Result<size_t>(0);
  text.resize(n.value_or(0));
  return text;
}

/// Shows the process and its ancestors to `visit` until that returns true;
/// whether it did.
bool AnyAncestor(pid_t pid, const std::function<bool(pid_t)>& visit) {
  for (int i = 0; i < kMaxAncestors && pid > 0; ++i) {
    if (visit(pid)) return true;
    const auto stat = ReadProcessStat(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

/// What has `key` in the text of /proc/PID/status; none: nothing has.
template <class Number>
std::optional<Number> StatusNumber(const std::string& status,
                                   std::string_view key, int base) {
  const std::string line = "\n" + std::string(key) + ":\t";
  const size_t at = status.find(line);
  if (at == std::string::npos) return std::nullopt;
  Number number{};
  const char* const end = status.data() + status.size();
  if (std::from_chars(status.data() + at + line.size(), end, number, base).ec !=
      std::errc()) {
    return std::nullopt;
  }
  return number;
}

constexpr uint64_t MaskOf(std::initializer_list<int> signals) {
  uint64_t mask = 0;
  for (const int signal : signals) mask |= uint64_t{1} << (signal - 1);
  return mask;
}

bool IsFuse(const MountEntry& mount) { return mount.type.starts_with("fuse"); }

/// Which file it is, as far as that is known without asking a daemon: what lies
/// on an overlay may come from a FUSE mount.
std::optional<std::pair<dev_t, uint64_t>> KnownFile(int fd) {
  struct statx stx{};
  constexpr int kFlags = AT_EMPTY_PATH | AT_STATX_DONT_SYNC;
  if (::statx(fd, "", kFlags, STATX_INO, &stx) != 0) return std::nullopt;
  return std::pair(::makedev(stx.stx_dev_major, stx.stx_dev_minor),
                   uint64_t{stx.stx_ino});
}

/// Whether this process finds the file `fd`, of `mount`, at `path`. Follows it
/// through no FUSE mount, which may be its own and wait for it.
bool LeadsHereTo(const std::string& path, int fd, const MountEntry& mount) {
  const auto table = ReadMountTable();
  if (!table) return false;
  bool has_filesystem = false;
  for (const MountEntry& entry : *table) {
    if (IsFuse(entry) && IsWithin(path, entry.mountpoint)) return false;
    has_filesystem = has_filesystem || entry.device() == mount.device();
  }
  if (!has_filesystem) return false;
  const auto here = OpenName(path, 0);
  const auto wanted = KnownFile(fd);
  return here && wanted && wanted == KnownFile(here->get());
}

}  // namespace

std::optional<ProcessStat> ReadProcessStat(pid_t pid) {
  if (pid <= 0) return std::nullopt;
  const std::string text = ReadProc(pid, "stat");
  // The name of the program stands in parentheses, and may have some itself.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  ProcessStat stat;
  std::string skipped;
  fields >> skipped >> stat.parent >> skipped >> stat.session;
  constexpr int kBetween = 15;  // session is field 6, the start field 22
  for (int i = 0; i < kBetween; ++i) fields >> skipped;
  fields >> stat.start;
  if (!fields) return std::nullopt;
  return stat;
}

ProcessIdentity IdentifyProcess(pid_t tid) {
  if (tid <= 0) return {};
  const auto pid = StatusNumber<pid_t>(ReadProc(tid, "status"), "Tgid", 10);
  const auto stat = pid ? ReadProcessStat(*pid) : std::nullopt;
  if (!stat) return {};
  return {.pid = *pid, .start = stat->start};
}

std::set<gid_t> OwnGroups() {
  std::set<gid_t> groups{::getegid()};
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> more(count > 0 ? static_cast<size_t>(count) : 0);
  const int got = ::getgroups(static_cast<int>(more.size()), more.data());
  if (got > 0) groups.insert(more.begin(), more.begin() + got);
  return groups;
}

FileRights ReadFileRights(pid_t tid) {
  // capable() of the kernel means the initial user namespace, whose number is
  // fixed (PROC_USER_INIT_INO).
  constexpr ino_t kInitialUserNamespace = 0xEFFFFFFD;
  constexpr uint64_t kFsetid = uint64_t{1} << CAP_FSETID;
  FileRights rights;
  if (tid <= 0) return rights;
  const std::string status = ReadProc(tid, "status");
  const std::string_view key = "\nGroups:\t";
  const size_t at = status.find(key);
  if (at != std::string::npos) {
    const size_t from = at + key.size();
    std::istringstream groups(
        status.substr(from, status.find('\n', from) - from));
    for (gid_t group = 0; groups >> group;) rights.groups.push_back(group);
  }
  struct stat user{};
  const std::string link = "/proc/" + std::to_string(tid) + "/ns/user";
  rights.fsetid =
      (StatusNumber<uint64_t>(status, "CapEff", 16).value_or(0) & kFsetid) !=
          0 &&
      ::stat(link.c_str(), &user) == 0 && user.st_ino == kInitialUserNamespace;
  return rights;
}

bool IsToEnd(pid_t tid) {
  constexpr uint64_t kAskToEnd = MaskOf({SIGHUP, SIGINT, SIGQUIT, SIGTERM});
  constexpr uint64_t kHarmless =
      MaskOf({SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN,
              SIGTTOU});  // where they are not caught
  const std::string status = tid > 0 ? ReadProc(tid, "status") : "";
  const auto mask = [&](const char* key) {
    return StatusNumber<uint64_t>(status, key, 16);
  };
  const auto of_thread = mask("SigPnd");
  const auto of_process = mask("ShdPnd");
  const auto blocked = mask("SigBlk");
  const auto caught = mask("SigCgt");
  if (!of_thread || !of_process || !blocked || !caught) return true;
  const uint64_t pending = (*of_thread | *of_process) & ~*blocked;
  const uint64_t survived = (*caught & ~kAskToEnd) | (kHarmless & ~*caught);
  return (pending & ~survived) != 0;
}

bool ProgramCounts(pid_t pid, const std::string& workspace) {
  const std::string process = std::to_string(pid);
  // Opened as a path, it asks no daemon of a mount.
  const auto program = OpenAt(AT_FDCWD, "/proc/" + process + "/exe", O_PATH);
  // The program's mount need not be one that this process sees.
  const auto table = ReadMountTable(process);
  if (!program || !table) return false;
  const MountEntry* mount = MountOf(program->get(), *table);
  // One that was unmounted lazily is in no table.
  if (mount == nullptr || IsFuse(*mount)) return false;
  const std::string path = PathOfFd(program->get());
  return !IsWithin(path, workspace) &&
         LeadsHereTo(path, program->get(), *mount);
}

bool DescendsFromUserOf(pid_t pid, dev_t device) {
  return AnyAncestor(pid,
                     [&](pid_t one) { return HasDirectoryOn(one, device); });
}

bool DescendsFrom(pid_t pid, pid_t ancestor) {
  return AnyAncestor(pid, [&](pid_t one) { return one == ancestor; });
}

}  // namespace txfs

#include "fs/host/mount_table.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <filesystem>
#include <functional>
#include <system_error>

#include "journal/support/file.h"
#include "journal/support/mutex.h"

namespace txfs {
namespace {

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

std::string Unescape(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    if (text.size() >= 4 && text[0] == '\\' && IsOctal(text[1]) &&
        IsOctal(text[2]) && IsOctal(text[3])) {
      out += static_cast<char>((text[1] - '0') * 64 + (text[2] - '0') * 8 +
                               (text[3] - '0'));
      text.remove_prefix(4);
    } else {
      out += text[0];
      text.remove_prefix(1);
    }
  }
  return out;
}

/// Cuts `text` up to `separator` off its front.
std::string_view Cut(std::string_view& text, char separator) {
  const size_t end = text.find(separator);
  const std::string_view head = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return head;
}

template <class T>
bool ParseNumber(std::string_view text, T& out) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, out);
  return error == std::errc() && at == end && !text.empty();
}

/// The value of `user_id=` among the options of a filesystem.
std::optional<uid_t> OwnerIn(std::string_view options) {
  constexpr std::string_view kKey = "user_id=";
  while (!options.empty()) {
    const std::string_view option = Cut(options, ',');
    uid_t owner = 0;
    if (option.starts_with(kKey) &&
        ParseNumber(option.substr(kKey.size()), owner)) {
      return owner;
    }
  }
  return std::nullopt;
}

/// "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPER"
std::optional<MountEntry> ParseLine(std::string_view line) {
  MountEntry entry;
  if (!ParseNumber(Cut(line, ' '), entry.mount_id)) return std::nullopt;
  if (!ParseNumber(Cut(line, ' '), entry.parent_id)) return std::nullopt;
  if (!ParseNumber(Cut(line, ':'), entry.major)) return std::nullopt;
  if (!ParseNumber(Cut(line, ' '), entry.minor)) return std::nullopt;
  entry.root = Unescape(Cut(line, ' '));
  entry.mountpoint = Unescape(Cut(line, ' '));
  entry.options = Unescape(Cut(line, ' '));
  while (!line.empty() && Cut(line, ' ') != "-") {
  }
  entry.type = Unescape(Cut(line, ' '));
  entry.source = Unescape(Cut(line, ' '));
  // Those of the filesystem: the kernel writes them, the mounter has no word in
  // them but for numbers.
  if (entry.type.starts_with("fuse")) entry.owner = OwnerIn(line);
  if (!line.empty()) entry.options += "," + Unescape(line);
  if (entry.mountpoint.empty() || entry.type.empty()) return std::nullopt;
  return entry;
}

std::string Normal(const std::string& path) {
  std::error_code ignored;
  const auto absolute = std::filesystem::absolute(path, ignored);
  std::string text = absolute.lexically_normal().native();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

/// The contents of `fd`, the file `path` of /proc, from where it stands.
Result<std::string> ReadProc(const UniqueFd& fd, const std::string& path) {
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "read " + path);
    if (n == 0) return text;
    text.append(chunk, static_cast<size_t>(n));
  }
}

Result<std::string> ReadProc(const std::string& path) {
  const UniqueFd fd = TRY(OpenAt(AT_FDCWD, path, O_RDONLY));
  return ReadProc(fd, path);
}

constexpr const char* kOwnTable = "/proc/self/mountinfo";

/// The mount table of this process, which is read again when the kernel says
/// that it has changed. The kernel does not say so when a directory on the way
/// to a mountpoint is renamed.
class KeptTable {
 public:
  Result<std::vector<MountEntry>> Read() {
    const MutexLock lock(mutex_);
    if (!fd_.valid()) {
      fd_ = TRY(OpenAt(AT_FDCWD, kOwnTable, O_RDONLY));
    } else if (!HasChanged()) {
      return table_;
    }
    auto text = ::lseek(fd_.get(), 0, SEEK_SET) == 0 ? ReadProc(fd_, kOwnTable)
                                                     : Fail(errno, kOwnTable);
    if (!text) {
      fd_.Reset();
      return std::unexpected(std::move(text).error());
    }
    table_ = ParseMountTable(*text);
    return table_;
  }

 private:
  /// Since it was opened, or last asked (proc(5), /proc/PID/mounts).
  [[nodiscard]] bool HasChanged() const REQUIRES(mutex_) {
    pollfd poll{.fd = fd_.get(), .events = POLLPRI, .revents = 0};
    return ::poll(&poll, 1, 0) != 0;
  }

  Mutex mutex_;
  UniqueFd fd_ GUARDED_BY(mutex_);
  std::vector<MountEntry> table_ GUARDED_BY(mutex_);
};

/// The process that keeps its table; 0: none does. One that it forks does not,
/// and uses neither its lock nor its descriptor.
std::atomic<pid_t> keeper = 0;

std::string_view CutWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  return Cut(line, ' ');
}

/// `uid` of this user namespace as the one around it has it; itself where that
/// cannot be told.
uid_t OutsideUid(uid_t uid) {
  const auto text = ReadProc("/proc/self/uid_map");
  std::string_view map = text ? *text : std::string_view();
  while (!map.empty()) {
    std::string_view line = Cut(map, '\n');
    uint32_t inside = 0;
    uint32_t outside = 0;
    uint32_t count = 0;
    if (ParseNumber(CutWord(line), inside) &&
        ParseNumber(CutWord(line), outside) &&
        ParseNumber(CutWord(line), count) && uid >= inside &&
        uid - inside < count) {
      return outside + (uid - inside);
    }
  }
  return uid;
}

template <class Counts>
std::optional<MountEntry> FindInnermost(const std::vector<MountEntry>& table,
                                        const std::string& path,
                                        Counts counts) {
  const std::string normal = Normal(path);
  const MountEntry* found = nullptr;
  for (const MountEntry& entry : table) {
    if (!IsWithin(normal, entry.mountpoint) || !counts(entry)) continue;
    if (found == nullptr ||
        entry.mountpoint.size() >= found->mountpoint.size()) {
      found = &entry;
    }
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

/// Also of the user outside a user namespace that the caller stands for.
bool IsCallers(const std::optional<uid_t>& owner) {
  return owner && (*owner == ::geteuid() || *owner == OutsideUid(::geteuid()));
}

}  // namespace

dev_t MountEntry::device() const { return ::makedev(major, minor); }

bool MountEntry::is_own() const { return is_txfs() && IsCallers(owner); }

bool MountEntry::is_strangers() const {
  if (!type.starts_with("fuse") || IsCallers(owner)) return false;
  return is_txfs() || owner.value_or(0) != 0;
}

std::vector<MountEntry> ParseMountTable(std::string_view mountinfo) {
  std::vector<MountEntry> table;
  while (!mountinfo.empty()) {
    auto entry = ParseLine(Cut(mountinfo, '\n'));
    if (entry) table.push_back(std::move(*entry));
  }
  return table;
}

Result<std::vector<MountEntry>> ReadMountTable(const std::string& process) {
  if (process == "self" && keeper == ::getpid()) {
    static KeptTable& table = *new KeptTable;
    return table.Read();
  }
  return ParseMountTable(TRY(ReadProc("/proc/" + process + "/mountinfo")));
}

void KeepMountTable(bool keep) { keeper = keep ? ::getpid() : 0; }

bool IsWithin(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::optional<MountEntry> FindTxfsMount(const std::vector<MountEntry>& table,
                                        const std::string& path) {
  return FindInnermost(table, path, std::mem_fn(&MountEntry::is_own));
}

std::optional<MountEntry> FindTxfsMount(const std::string& path) {
  const auto table = ReadMountTable();
  return table ? FindTxfsMount(*table, path) : std::nullopt;
}

std::optional<MountEntry> FindAnyTxfsMount(const std::string& path) {
  const auto table = ReadMountTable();
  if (!table) return std::nullopt;
  return FindInnermost(*table, path, std::mem_fn(&MountEntry::is_txfs));
}

int MountIdOfDescriptor(int fd) {
  const auto text = ReadProc("/proc/self/fdinfo/" + std::to_string(fd));
  std::string_view rest = text ? *text : std::string_view();
  constexpr std::string_view kKey = "mnt_id:\t";
  while (!rest.empty()) {
    const std::string_view line = Cut(rest, '\n');
    int id = 0;
    if (line.starts_with(kKey) && ParseNumber(line.substr(kKey.size()), id)) {
      return id;
    }
  }
  return 0;
}

const MountEntry* MountOf(int fd, const std::vector<MountEntry>& table) {
  const auto found =
      std::ranges::find(table, MountIdOfDescriptor(fd), &MountEntry::mount_id);
  return found == table.end() ? nullptr : &*found;
}

}  // namespace txfs

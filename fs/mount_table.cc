#include "fs/mount_table.h"

#include <fcntl.h>
#include <sys/sysmacros.h>

#include <charconv>
#include <filesystem>

#include "journal/base/file.h"

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
  return std::from_chars(text.data(), end, out).ptr == end && !text.empty();
}

/// "ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [TAG...] - TYPE SOURCE SUPER"
std::optional<MountEntry> ParseLine(std::string_view line) {
  MountEntry entry;
  if (!ParseNumber(Cut(line, ' '), entry.mount_id)) return std::nullopt;
  if (!ParseNumber(Cut(line, ' '), entry.parent_id)) return std::nullopt;
  if (!ParseNumber(Cut(line, ':'), entry.major)) return std::nullopt;
  if (!ParseNumber(Cut(line, ' '), entry.minor)) return std::nullopt;
  Cut(line, ' ');
  entry.mountpoint = Unescape(Cut(line, ' '));
  entry.options = Unescape(Cut(line, ' '));
  while (!line.empty() && Cut(line, ' ') != "-") {
  }
  entry.type = Unescape(Cut(line, ' '));
  entry.source = Unescape(Cut(line, ' '));
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

}  // namespace

dev_t MountEntry::device() const { return ::makedev(major, minor); }

std::vector<MountEntry> ParseMountTable(std::string_view mountinfo) {
  std::vector<MountEntry> table;
  while (!mountinfo.empty()) {
    auto entry = ParseLine(Cut(mountinfo, '\n'));
    if (entry) table.push_back(std::move(*entry));
  }
  return table;
}

Result<std::vector<MountEntry>> ReadMountTable(const std::string& process) {
  const std::string path = "/proc/" + process + "/mountinfo";
  const UniqueFd fd = TRY(OpenAt(AT_FDCWD, path, O_RDONLY));
  std::string text;
  char chunk[16384];
  for (;;) {
    const ssize_t n = ::read(fd.get(), chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "read " + path);
    if (n == 0) return ParseMountTable(text);
    text.append(chunk, static_cast<size_t>(n));
  }
}

bool IsWithin(std::string_view path, std::string_view directory) {
  if (directory == "/") return path.starts_with('/');
  return path.starts_with(directory) &&
         (path.size() == directory.size() || path[directory.size()] == '/');
}

std::optional<MountEntry> FindTxfsMount(const std::vector<MountEntry>& table,
                                        const std::string& path) {
  const std::string normal = Normal(path);
  const MountEntry* found = nullptr;
  for (const MountEntry& entry : table) {
    if (entry.type != "fuse.txfs" || !IsWithin(normal, entry.mountpoint)) {
      continue;
    }
    if (found == nullptr ||
        entry.mountpoint.size() >= found->mountpoint.size()) {
      found = &entry;
    }
  }
  return found == nullptr ? std::nullopt : std::optional(*found);
}

std::optional<MountEntry> FindTxfsMount(const std::string& path) {
  const auto table = ReadMountTable();
  return table ? FindTxfsMount(*table, path) : std::nullopt;
}

}  // namespace txfs

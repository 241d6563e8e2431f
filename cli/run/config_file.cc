#include "cli/run/config_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "cli/locate/way.h"
#include "cli/output/paths.h"
#include "cli/protocol/runtime_dir.h"
#include "fs/host/mount_table.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

/// Larger than any that somebody wrote.
constexpr size_t kMaxConfig = size_t{1} << 20;
constexpr size_t kMaxName = 64;

constexpr std::array<std::pair<std::string_view, Settle>, 3> kSettles{
    {{"commit", Settle::kCommit},
     {"keep", Settle::kKeep},
     {"discard", Settle::kDiscard}}};

Status CheckOwnerOfConfig(int fd, const std::string& path,
                          const std::string& what) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return Fail(errno, path);
  if (!IsOwnOrRoots(st.st_uid)) {
    return Fail(EPERM, "the " + what + " " + path + " belongs to another user",
                "check its content, then make it yours with chown");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(EPERM,
                "the " + what + " " + path + " is writable by other users",
                "check its content, then run chmod go-w on it");
  }
  return {};
}

}  // namespace

Result<std::string> CheckWayToConfig(const std::string& path) {
  const std::vector<MountEntry> table = TRY(ReadMountTable());
  return WalkTo(path, [&](int fd) -> Status {
    const MountEntry* entry = MountOf(fd, table);
    if (entry == nullptr || !(entry->is_txfs() || entry->is_strangers())) {
      return {};
    }
    return Fail(EPERM,
                path + " lies in the mount at " + entry->mountpoint +
                    ", where programs can change what they run with",
                "unmount it, or set XDG_CONFIG_HOME to a directory elsewhere");
  });
}

Result<std::string> ReadConfigFile(const std::string& path,
                                   const std::string& what) {
  const std::string real = TRY(CheckWayToConfig(path));
  const auto fd = OpenFileBelow(AT_FDCWD, real, O_RDONLY);
  if (!fd && fd.error().code == EBADMSG) {
    return Fail(EPERM, "the " + what + " " + path + " is not a regular file",
                "replace it with a regular file");
  }
  if (!fd) {
    return Fail(fd.error().code, "cannot read the " + what + " " + path,
                "make it readable, or remove it");
  }
  TRY(CheckOwnerOfConfig(fd->get(), path, what));
  std::string text(kMaxConfig + 1, '\0');
  text.resize(TRY(ReadFully(
      fd->get(), 0, {reinterpret_cast<std::byte*>(text.data()), text.size()})));
  if (text.size() > kMaxConfig) {
    return Fail(EFBIG, "the " + what + " " + path + " has more than 1 MiB",
                "make it shorter");
  }
  return text;
}

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

bool IsPlainName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && name[0] != '.' &&
         name[0] != '-' && std::ranges::all_of(name, [](char c) {
           return IsWordCharacter(c) || c == '-' || c == '.' || c == '+';
         });
}

bool IsVariableName(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') &&
         std::ranges::all_of(name, IsWordCharacter);
}

bool IsBelowHome(std::string_view path) {
  if (!path.starts_with("~/") || path.size() == 2) return false;
  path.remove_prefix(1);
  const std::string closed = std::string(path) + "/";
  return !closed.contains("//") && !closed.contains("/./") &&
         !closed.contains("/../");
}

std::string InHome(std::string_view path) {
  return JoinPath(HomeDirectory(), std::string(path.substr(2)));
}

std::optional<Settle> SettleNamed(std::string_view name) {
  for (const auto& [known, settle] : kSettles) {
    if (known == name) return settle;
  }
  return std::nullopt;
}

Result<std::vector<std::string>> ReadWords(const policy::Section& section,
                                           std::string_view key,
                                           bool (*is_valid)(std::string_view),
                                           std::string_view expected) {
  std::vector<std::string> words = TRY(section.Texts(key));
  for (const std::string& word : words) {
    TRY(section.CheckPlain(key, word, policy::kMaxPattern));
    if (!is_valid(word)) {
      return section.Wrong(key, "has " + policy::Quoted(word), expected);
    }
  }
  return words;
}

Result<std::optional<Settle>> ReadSettle(const policy::Section& section,
                                         std::string_view key) {
  if (!section.Has(key)) return std::nullopt;
  const std::string name = TRY(section.Text(key, ""));
  const auto settle = SettleNamed(name);
  if (settle) return settle;
  return section.Wrong(key, "is " + policy::Quoted(name),
                       "commit, keep or discard");
}

}  // namespace txfs::cli

#include "journal/support/case_folding.h"

#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "journal/support/file.h"

namespace txfs {
namespace {

constexpr uint64_t kBcachefs = 0xca451a4e;
constexpr uint64_t kXfs = 0x58465342;

/// Those that compare bytes, or say of a directory that it does not.
constexpr std::array<uint64_t, 8> kTellNamesApart{EXT4_SUPER_MAGIC,
                                                  F2FS_SUPER_MAGIC,
                                                  BTRFS_SUPER_MAGIC,
                                                  TMPFS_MAGIC,
                                                  kXfs,
                                                  OVERLAYFS_SUPER_MAGIC,
                                                  RAMFS_MAGIC,
                                                  kBcachefs};

/// First and last of code points that a name may have without being another
/// one: default ignorable ones of Unicode, and those that HFS+ ignores.
constexpr std::array<std::pair<uint32_t, uint32_t>, 17> kIgnored{{
    {0x00AD, 0x00AD},
    {0x034F, 0x034F},
    {0x061C, 0x061C},
    {0x115F, 0x1160},
    {0x17B4, 0x17B5},
    {0x180B, 0x180F},
    {0x200B, 0x200F},
    {0x202A, 0x202E},
    {0x2060, 0x206F},
    {0x3164, 0x3164},
    {0xFE00, 0xFE0F},
    {0xFEFF, 0xFEFF},
    {0xFFA0, 0xFFA0},
    {0xFFF0, 0xFFF8},
    {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A},
    {0xE0000, 0xE0FFF},
}};

bool IsIgnored(uint32_t code_point) {
  return std::ranges::any_of(kIgnored, [&](const auto& range) {
    return code_point >= range.first && code_point <= range.second;
  });
}

/// The code point at the beginning of `text`, which is not empty, and its
/// bytes; a byte that begins none stands for itself.
std::pair<uint32_t, size_t> FirstOf(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  size_t size = 1;
  if (first >= 0xF0) {
    size = 4;
  } else if (first >= 0xE0) {
    size = 3;
  } else if (first >= 0xC0) {
    size = 2;
  }
  if (size == 1 || size > text.size()) return {first, 1};
  uint32_t code_point = first & (0x7FU >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80U) return {first, 1};
    code_point = code_point << 6 | (next & 0x3FU);
  }
  return {code_point, size};
}

}  // namespace

bool FoldsCase(int directory) {
  struct statfs st{};
  if (::fstatfs(directory, &st) != 0) return true;
  const auto type = static_cast<uint64_t>(st.f_type) & 0xFFFFFFFF;
  if (std::ranges::find(kTellNamesApart, type) == kTellNamesApart.end()) {
    return true;
  }
  // The kernel writes an int, whatever the number of the request says.
  int flags = 0;
  // An O_PATH descriptor, which does not tell.
  if (::ioctl(directory, FS_IOC_GETFLAGS, &flags) != 0) return errno == EBADF;
  return (static_cast<unsigned>(flags) & FS_CASEFOLD_FL) != 0;
}

std::string FoldedName(std::string_view name) {
  constexpr uint32_t kLongS = 0x017F;
  name = name.substr(0, name.find(':'));
  std::string folded;
  while (!name.empty()) {
    const auto [code_point, size] = FirstOf(name);
    if (code_point == kLongS) {
      folded += 's';
    } else if (code_point >= 'A' && code_point <= 'Z') {
      folded += static_cast<char>(code_point - 'A' + 'a');
    } else if (size == 1 || !IsIgnored(code_point)) {
      folded.append(name.substr(0, size));
    }
    name.remove_prefix(size);
  }
  while (folded.ends_with('.') || folded.ends_with(' ')) folded.pop_back();
  return folded;
}

Result<bool> ListsName(int directory, std::string_view name) {
  const std::vector<std::string> names = TRY(ListNames(directory, "."));
  return std::ranges::find(names, name) != names.end();
}

}  // namespace txfs

#include "cli/mount/mount_options.h"

#include <algorithm>
#include <array>

namespace txfs::cli {
namespace {

/// An option that the kernel takes, and the one that takes it back.
struct Pair {
  std::string_view on, off;
};
constexpr std::array kPassedOn{
    Pair{"nosuid", "suid"},         Pair{"nodev", "dev"},
    Pair{"noexec", "exec"},         Pair{"noatime", "atime"},
    Pair{"sync", "async"},          Pair{"dirsync", ""},
    Pair{"relatime", ""},           Pair{"nodiratime", "diratime"},
    Pair{"lazytime", "nolazytime"}, Pair{"nosymfollow", ""},
};

constexpr std::array<std::string_view, 17> kIgnored{
    "defaults",      "default_permissions",
    "user",          "users",
    "nouser",        "owner",
    "noowner",       "group",
    "nogroup",       "auto",
    "noauto",        "_netdev",
    "nofail",        "norelatime",
    "nostrictatime", "nouser_id",
    "silent"};
// The last five are in the mount table, from which mount(8) takes the options
// of a remount.
constexpr std::array<std::string_view, 12> kIgnoredPrefixes{
    "x-",       "X-",       "comment=",  "user=",     "uhelper=",  "helper=",
    "subtype=", "user_id=", "group_id=", "rootmode=", "max_read=", "blksize="};

std::vector<std::string> SplitList(std::string_view list) {
  std::vector<std::string> items(1);
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i] == '\\' && i + 1 < list.size()) {
      items.back() += list[++i];
    } else if (list[i] == ',') {
      items.emplace_back();
    } else {
      items.back() += list[i];
    }
  }
  std::erase(items, "");
  return items;
}

bool IsIgnored(std::string_view option) {
  return std::ranges::find(kIgnored, option) != kIgnored.end() ||
         std::ranges::any_of(kIgnoredPrefixes, [&](std::string_view prefix) {
           return option.starts_with(prefix);
         });
}

bool TakeKernelOption(const std::string& option,
                      std::vector<std::string>& kernel) {
  for (const Pair& pair : kPassedOn) {
    if (option != pair.on && option != pair.off) continue;
    std::erase_if(kernel, [&](const std::string& given) {
      return given == pair.on || given == pair.off;
    });
    kernel.push_back(option);
    return true;
  }
  return false;
}

Status TakeValue(const std::string& option, MountFlags& flags) {
  const size_t equals = option.find('=');
  const std::string key = option.substr(0, equals);
  const std::string value =
      equals == std::string::npos ? "" : option.substr(equals + 1);
  std::vector<std::string>* list = key == "policy" ? &flags.policies
                                   : key == "without_rule"
                                       ? &flags.without_rules
                                       : nullptr;
  std::optional<std::string>* target = key == "fsname"  ? &flags.fsname
                                       : key == "store" ? &flags.store
                                       : key == "name"  ? &flags.name
                                                        : nullptr;
  if (target == nullptr && list == nullptr) {
    return Fail(ErrorKind::kUsage, 0, "unknown mount option \"" + option + "\"",
                "txfs(1) lists the options that -o takes");
  }
  if (value.empty()) {
    return Fail(ErrorKind::kUsage, 0, "mount option " + key + " needs a value",
                key + "=VALUE");
  }
  if (list != nullptr) {
    list->push_back(value);
  } else {
    *target = value;
  }
  return {};
}

}  // namespace

Status ParseMountOptions(std::string_view list, MountFlags& flags) {
  for (const std::string& option : SplitList(list)) {
    if (option == "ro" || option == "rw") {
      flags.read_only = option == "ro";
    } else if (option == "remount") {
      flags.remount = true;
    } else if (option == "strictatime") {
      return Fail(ErrorKind::kUsage, 0,
                  "mount option strictatime is not possible: reading never "
                  "changes access times in a txfs mount",
                  "omit it");
    } else if (option == "allow_other") {
      flags.allow_other = true;
    } else if (option == "as_owner") {
      flags.as_owner = true;
    } else if (option == "no_default_policy") {
      flags.no_default_policy = true;
    } else if (!IsIgnored(option) && !TakeKernelOption(option, flags.kernel)) {
      TRY(TakeValue(option, flags));
    }
  }
  return {};
}

}  // namespace txfs::cli

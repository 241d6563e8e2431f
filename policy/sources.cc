#include "policy/sources.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "journal/base/file.h"
#include "journal/base/unique_fd.h"

namespace txfs::policy {
namespace {

/// Larger than any that somebody wrote.
constexpr size_t kMaxFile = size_t{4} << 20;

Status CheckOwner(const struct stat& st, const std::string& path) {
  if (!S_ISREG(st.st_mode)) {
    return Fail(EPERM, "the policy " + path + " is no file",
                "name a regular file");
  }
  if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Fail(EPERM,
                "the policy " + path +
                    " can be written by others than its "
                    "owner",
                "chmod go-w it, after a look at what it says");
  }
  if (st.st_uid != 0 && st.st_uid != ::geteuid()) {
    return Fail(EPERM, "the policy " + path + " is somebody else's",
                "let it be owned by root or by yourself");
  }
  return {};
}

}  // namespace

Result<Loaded> LoadFile(const std::string& path) {
  const auto fd = OpenAt(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);
  if (!fd) return Fail(fd.error().code, "cannot read the policy " + path);
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) {
    return Fail(errno, "cannot read the policy " + path);
  }
  TRY(CheckOwner(st, path));
  // The file that was looked at, whatever has its name by now.
  const std::string text = TRY(ReadWholeFile(
      AT_FDCWD, "/proc/self/fd/" + std::to_string(fd->get()), kMaxFile));
  return Load(text, path);
}

Result<std::shared_ptr<const Policy>> Combine(std::vector<Loaded> files) {
  std::vector<Rule> rules;
  std::map<std::string, Place> places;
  uint64_t hash = 0;
  for (Loaded& file : files) {
    hash = std::rotl(hash, 1) ^ file.hash;
    for (Rule& rule : file.rules) {
      const auto [first, fresh] = places.try_emplace(rule.id, rule.place);
      if (!fresh) {
        return Fail(EINVAL, rule.place.ToString() + ": id \"" + rule.id +
                                "\" is taken by " + first->second.ToString() +
                                "; expected an id that no other rule has");
      }
      rules.push_back(std::move(rule));
    }
  }
  return std::make_shared<const Policy>(std::move(rules),
                                        std::max<uint64_t>(hash, 1));
}

}  // namespace txfs::policy

#include "cli/output/paths.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <memory>

namespace txfs::cli {
namespace {

struct Freed {
  void operator()(char* text) const { std::free(text); }
};

/// Parent and last component of an absolute path without trailing slashes.
struct Split {
  std::string parent, last;
};

Split SplitLast(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  const size_t slash = path.rfind('/');
  return {.parent = std::string(slash == 0 ? "/" : path.substr(0, slash)),
          .last = std::string(path.substr(slash + 1))};
}

std::string Resolve(const std::string& path) {
  const std::unique_ptr<char, Freed> real(::realpath(path.c_str(), nullptr));
  if (real) return real.get();
  const Split split = SplitLast(path);
  if (split.last.empty()) return "/";
  const std::string parent = Resolve(split.parent);
  if (split.last == ".") return parent;
  if (split.last == "..") return SplitLast(parent).parent;
  return JoinPath(parent, split.last);
}

}  // namespace

std::string MakeAbsolute(const std::string& directory,
                         const std::string& path) {
  return path.starts_with('/') ? path : JoinPath(directory, path);
}

Result<std::string> CurrentDirectory() {
  const std::unique_ptr<char, Freed> cwd(::getcwd(nullptr, 0));
  if (cwd && cwd.get()[0] == '/') return std::string(cwd.get());
  // Of one that was removed the kernel still knows where it was; $PWD may be
  // that of somebody else.
  constexpr std::string_view kDeleted = " (deleted)";
  std::string path(PATH_MAX, '\0');
  const ssize_t size = ::readlink("/proc/self/cwd", path.data(), path.size());
  path.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  if (path.starts_with('/') && path.ends_with(kDeleted)) {
    path.resize(path.size() - kDeleted.size());
    return path;
  }
  return Fail(cwd ? ENOENT : errno, "cannot find the working directory",
              "change to a directory that exists, or give one with -C");
}

std::string ResolvePath(const std::string& directory, const std::string& path) {
  return Resolve(MakeAbsolute(directory, path));
}

std::string ResolveParent(const std::string& directory,
                          const std::string& path) {
  const Split split = SplitLast(MakeAbsolute(directory, path));
  if (split.last.empty() || split.last == "." || split.last == "..") {
    return ResolvePath(directory, path);
  }
  return JoinPath(Resolve(split.parent), split.last);
}

bool IsWithin(std::string_view path, std::string_view ancestor) {
  return RelativeTo(path, ancestor).has_value();
}

std::optional<std::string> RelativeTo(std::string_view path,
                                      std::string_view root) {
  if (root == "/") return std::string(path.substr(1));
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (path.empty()) return "";
  if (path.front() != '/') return std::nullopt;
  return std::string(path.substr(1));
}

std::string JoinPath(std::string_view a, std::string_view b) {
  std::string path(a);
  if (b.empty()) return path;
  if (!path.ends_with('/')) path += '/';
  return path += b;
}

}  // namespace txfs::cli

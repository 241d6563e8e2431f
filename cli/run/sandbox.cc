#include "cli/run/sandbox.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>

#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

/// A list of arguments.
class Arguments {
 public:
  template <class... Words>
  void Add(Words&&... words) {
    (list_.emplace_back(std::forward<Words>(words)), ...);
  }
  std::vector<std::string> Take() && { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

/// Empty and private in each sandbox, or made for it.
constexpr std::array kPrivate = {"/dev", "/proc", "/run", "/tmp", "/var/tmp"};

/// A new directory in memory at `path`.
void AddMemory(Arguments& arguments, const Sandbox& sandbox, const char* mode,
               const char* path) {
  if (sandbox.memory != 0) {
    arguments.Add("--size", std::to_string(sandbox.memory));
  }
  arguments.Add("--perms", mode, "--tmpfs", path);
}

/// Of /run, only what name resolution needs: the rest is sockets of services,
/// which act outside of the sandbox for everybody who asks them. A resolver
/// would send what a command asks it to the network.
void AddRuntime(Arguments& arguments, const Sandbox& sandbox) {
  AddMemory(arguments, sandbox, "0755", "/run");
  if (!sandbox.has_network) return;
  for (const char* path : kResolverPaths) {
    arguments.Add("--ro-bind-try", path, path);
  }
}

using Bind = Sandbox::Bind;

/// The bind of `sandbox` that shows what is at `path`: of several, the last.
const Bind* BindAt(const Sandbox& sandbox, const std::string& path) {
  const Bind* found = nullptr;
  for (const Bind& bind : sandbox.binds) {
    if (IsWithin(path, bind.at)) found = &bind;
  }
  return found;
}

bool IsHidden(const Sandbox& sandbox, const std::string& path) {
  return std::ranges::any_of(sandbox.hidden, [&](const std::string& hidden) {
    return IsWithin(path, hidden);
  });
}

/// The type of what the command would see at `path`, which has no links but
/// one that leads nowhere; 0: nothing.
mode_t TypeAt(const Sandbox& sandbox, const std::string& path) {
  const Bind* bind = BindAt(sandbox, path);
  const bool is_private =
      bind == nullptr && std::ranges::any_of(kPrivate, [&](const char* place) {
        return IsWithin(path, place);
      });
  if (is_private) return 0;
  const std::string from =
      bind == nullptr ? path
                      : JoinPath(bind->seen(), *RelativeTo(path, bind->at));
  struct stat st{};
  if (::lstat(from.c_str(), &st) != 0 || S_ISLNK(st.st_mode)) return 0;
  return st.st_mode & S_IFMT;
}

struct SandboxMount {
  std::string from;  ///< "": empty, to hide what is there
  bool writable = false;
};
using SandboxMounts = std::map<std::string, SandboxMount>;

/// Mounts the directories between `path` and the writable bind that it lies in
/// on themselves. The command could move them otherwise, and with them what is
/// hidden: a later sandbox of the run, and what is kept of the home, would have
/// it elsewhere.
void PinParents(SandboxMounts& places, const Sandbox& sandbox,
                const std::string& path) {
  const auto parent = [](const std::string& of) {
    return of.substr(0, std::max<size_t>(of.rfind('/'), 1));
  };
  std::string above = parent(path);
  const Bind* bind = BindAt(sandbox, above);
  if (bind == nullptr || !bind->writable) return;
  for (; above.size() > bind->at.size(); above = parent(above)) {
    if (IsHidden(sandbox, above) || TypeAt(sandbox, above) != S_IFDIR) continue;
    places.try_emplace(
        above, JoinPath(bind->from, *RelativeTo(above, bind->at)), true);
  }
}

SandboxMounts MountsOf(const Sandbox& sandbox) {
  SandboxMounts places;
  for (const Bind& bind : sandbox.binds) {
    const bool is_workspace = &bind == &sandbox.binds.back();
    const bool is_shown = is_workspace || (BindAt(sandbox, bind.at) == &bind &&
                                           !IsHidden(sandbox, bind.at));
    if (is_shown) places[bind.at] = {bind.from, bind.writable};
  }
  for (const std::string& path : sandbox.hidden) {
    if (TypeAt(sandbox, path) != 0) places.try_emplace(path);
  }
  std::vector<std::string> paths;
  for (const auto& [path, place] : places) paths.push_back(path);
  for (const std::string& path : paths) PinParents(places, sandbox, path);
  return places;
}

/// Adds the binds and what hides paths, each after what it lies in.
void AddPlaces(Arguments& arguments, const Sandbox& sandbox,
               const std::function<int()>& open_empty) {
  std::vector<std::string> empty;
  for (const auto& [path, place] : MountsOf(sandbox)) {
    if (!place.from.empty()) {
      arguments.Add(place.writable ? "--bind" : "--ro-bind", place.from, path);
    } else if (TypeAt(sandbox, path) == S_IFDIR) {
      arguments.Add("--tmpfs", path);
      empty.push_back(path);
    } else {
      // A device, such as /dev/null, could not be opened there.
      arguments.Add("--perms", "0444", "--ro-bind-data",
                    std::to_string(open_empty()), path);
    }
  }
  // When the workspace has its place in the one it may lie in.
  for (const std::string& path : empty) arguments.Add("--remount-ro", path);
  if (BindAt(sandbox, "/dev") == nullptr) arguments.Add("--remount-ro", "/dev");
}

}  // namespace

std::vector<std::string> BwrapArguments(
    const Sandbox& sandbox, bool users,
    const std::function<int()>& open_empty) {
  Arguments arguments;
  arguments.Add("--die-with-parent", "--unshare-pid", "--unshare-ipc",
                "--unshare-uts", "--unshare-cgroup-try");
  if (users) arguments.Add("--unshare-user");
  if (users && !sandbox.may_nest) arguments.Add("--disable-userns");
  if (!users) {
    // Those of root that act on files and processes, as containers have them.
    arguments.Add("--cap-drop", "ALL");
    for (const char* capability :
         {"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
          "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL",
          "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT"}) {
      arguments.Add("--cap-add", capability);
    }
    // To map user 0 in a user namespace.
    if (sandbox.may_nest) arguments.Add("--cap-add", "CAP_SETFCAP");
  }
  // With a proxy, it is in a network namespace already.
  if (!sandbox.has_network && sandbox.proxy == nullptr) {
    arguments.Add("--unshare-net");
  }
  arguments.Add("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc");
  // The owner of the machine's /proc is root in the sandbox, too.
  if (!users) {
    for (const char* name : {"sys", "sysrq-trigger", "irq", "bus", "fs"}) {
      const std::string path = std::string("/proc/") + name;
      arguments.Add("--ro-bind-try", path, path);
    }
  }
  for (const char* path : {"/tmp", "/var/tmp", "/dev/shm"}) {
    AddMemory(arguments, sandbox, "1777", path);
  }
  AddRuntime(arguments, sandbox);
  AddPlaces(arguments, sandbox, open_empty);
  arguments.Add("--chdir", sandbox.directory, "--clearenv");
  for (const auto& [name, value] : sandbox.environment) {
    arguments.Add("--setenv", name, value);
  }
  return std::move(arguments).Take();
}

}  // namespace txfs::cli

#include "cli/run/sandbox.h"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

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

bool IsDirectory(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

/// Of /run, only what name resolution needs: the rest is sockets of services,
/// which act outside of the sandbox for everybody who asks them.
void AddRuntime(Arguments& arguments) {
  arguments.Add("--tmpfs", "/run");
  for (const char* path :
       {"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager"}) {
    arguments.Add("--ro-bind-try", path, path);
  }
}

void AddHidden(Arguments& arguments, const std::string& path) {
  if (IsDirectory(path)) {
    arguments.Add("--tmpfs", path, "--remount-ro", path);
  } else {
    arguments.Add("--ro-bind", "/dev/null", path);
  }
}

}  // namespace

std::vector<std::string> BwrapArguments(const Sandbox& sandbox, bool users) {
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
  }
  if (!sandbox.has_network) arguments.Add("--unshare-net");
  arguments.Add("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc");
  // The owner of the machine's /proc is root in the sandbox, too.
  if (!users) {
    for (const char* name : {"sys", "sysrq-trigger", "irq", "bus", "fs"}) {
      const std::string path = std::string("/proc/") + name;
      arguments.Add("--ro-bind-try", path, path);
    }
  }
  for (const char* path : {"/tmp", "/var/tmp"}) {
    arguments.Add("--perms", "1777", "--tmpfs", path);
  }
  AddRuntime(arguments);
  // What is hidden in the home is below it, and so comes after it; the
  // workspace is never hidden.
  for (const Sandbox::Bind& bind : sandbox.binds) {
    arguments.Add(bind.writable ? "--bind" : "--ro-bind", bind.from, bind.at);
    for (const std::string& path : sandbox.hidden) {
      if (path != bind.at && IsWithin(path, bind.at)) {
        AddHidden(arguments, path);
      }
    }
  }
  for (const std::string& path : sandbox.hidden) {
    const bool done =
        std::ranges::any_of(sandbox.binds, [&](const Sandbox::Bind& bind) {
          return path != bind.at && IsWithin(path, bind.at);
        });
    if (!done) AddHidden(arguments, path);
  }
  arguments.Add("--chdir", sandbox.directory, "--clearenv");
  for (const auto& [name, value] : sandbox.environment) {
    arguments.Add("--setenv", name, value);
  }
  return std::move(arguments).Take();
}

}  // namespace txfs::cli

#include "cli/run/sandbox_probes.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <tuple>

#include "cli/run/id_map.h"
#include "cli/run/process.h"
#include "cli/run/sandbox.h"
#include "fs/host/mount_table.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

constexpr const char* kUserName = "user-namespace";
constexpr const char* kMountName = "mount-namespace";
constexpr const char* kSandboxName = "sandbox";

constexpr const char* kAppArmor =
    "kernel.apparmor_restrict_unprivileged_userns";
constexpr const char* kAppArmorRemedy =
    "as root: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or "
    "give txfs an AppArmor profile that allows userns (docs/run.md)";

/// How long a sandbox may take to run `true`, milliseconds.
constexpr uint64_t kSandboxMs = 20'000;

/// The value of the kernel parameter `name`; none if the kernel has it not.
std::optional<long> Parameter(std::string name) {
  std::ranges::replace(name, '.', '/');
  std::ifstream file("/proc/sys/" + name);
  long value = 0;
  return file >> value ? std::optional(value) : std::nullopt;
}

/// AppArmor takes the capabilities in a user namespace of programs that it has
/// no profile for.
bool IsAppArmorInTheWay(int code) {
  return (code == EPERM || code == EACCES) && Parameter(kAppArmor) == 1;
}

/// In a chroot, nothing is mounted at the root that the process sees.
bool IsInChroot() {
  const auto table = ReadMountTable();
  return table && std::ranges::none_of(*table, [](const MountEntry& entry) {
           return entry.mountpoint == "/";
         });
}

/// The last step of a process on the way to a namespace as that of a sandbox.
struct NamespaceTrial {
  enum class Step : uint8_t { kUser, kIds, kMount, kPrivateMount, kDone };
  Step step = Step::kUser;
  int code = EIO;  ///< why it failed; 0: it did not
};

bool PutText(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) ==
                           static_cast<ssize_t>(text.size());
}

/// As in the stage of a run: root maps all ids, from outside.
bool MapAll(pid_t child) {
  const std::string process = "/proc/" + std::to_string(child);
  return PutText(process + "/uid_map", IdentityMap("uid_map")) &&
         PutText(process + "/gid_map", IdentityMap("gid_map"));
}

bool MapOwnIds(uid_t uid, gid_t gid) {
  const auto one = [](uint64_t id) {
    return std::to_string(id) + " " + std::to_string(id) + " 1";
  };
  return PutText("/proc/self/setgroups", "deny") &&
         PutText("/proc/self/uid_map", one(uid)) &&
         PutText("/proc/self/gid_map", one(gid));
}

NamespaceTrial EnterNamespaces(int parent) {
  using Step = NamespaceTrial::Step;
  const uid_t uid = ::geteuid();
  const gid_t gid = ::getegid();
  if (::unshare(CLONE_NEWUSER) != 0) return {Step::kUser, errno};
  if (uid == 0) {
    const NamespaceTrial made{Step::kUser, 0};
    char byte = 0;
    if (::send(parent, &made, sizeof made, 0) != sizeof made ||
        ::recv(parent, &byte, 1, 0) != 1) {
      return {Step::kIds, EPERM};
    }
  } else if (!MapOwnIds(uid, gid)) {
    return {Step::kIds, errno};
  }
  if (::unshare(CLONE_NEWNS) != 0) return {Step::kMount, errno};
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return {Step::kPrivateMount, errno};
  }
  return {Step::kDone, 0};
}

/// Maps the ids of `child`, if it waits for that, and takes what it says last.
NamespaceTrial FollowTrial(pid_t child, int socket) {
  using Step = NamespaceTrial::Step;
  NamespaceTrial trial;
  if (::recv(socket, &trial, sizeof trial, 0) != sizeof trial) return {};
  if (trial.step != Step::kUser || trial.code != 0) return trial;
  const char byte = 0;
  if (!MapAll(child)) return {Step::kIds, errno};
  if (::send(socket, &byte, 1, MSG_NOSIGNAL) != 1 ||
      ::recv(socket, &trial, sizeof trial, 0) != sizeof trial) {
    return {Step::kIds, EIO};
  }
  return trial;
}

NamespaceTrial TryNamespaces() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return {.code = errno};
  }
  UniqueFd ours(ends[0]), theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return {.code = errno};
  if (child == 0) {
    ours.Reset();
    const NamespaceTrial trial = EnterNamespaces(theirs.get());
    std::ignore = ::send(theirs.get(), &trial, sizeof trial, MSG_NOSIGNAL);
    ::_exit(0);
  }
  theirs.Reset();
  const NamespaceTrial trial = FollowTrial(child, ours.get());
  ours.Reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return trial;
}

Probe RefusedUser(std::string why, std::string remedy) {
  return {kUserName, Probe::State::kFail,
          "no user namespace can be made: " + std::move(why),
          std::move(remedy)};
}

/// At the limit, which is counted in each namespace around this one as well.
Probe TooManyUserNamespaces() {
  if (Parameter("user.max_user_namespaces") == 0) {
    return RefusedUser("user.max_user_namespaces is 0",
                       "as root: sysctl -w user.max_user_namespaces=15000");
  }
  return RefusedUser(
      "the limit of a sandbox or container around this process is reached",
      "run txfs outside of it, or raise user.max_user_namespaces there");
}

Probe ExplainNoUser(int code) {
  if (code == ENOSPC || code == EUSERS) return TooManyUserNamespaces();
  if (code == EINVAL || code == ENOSYS) {
    return RefusedUser("this kernel has none",
                       "use a kernel with CONFIG_USER_NS");
  }
  if (Parameter("kernel.unprivileged_userns_clone") == 0 && ::geteuid() != 0) {
    return RefusedUser("kernel.unprivileged_userns_clone is 0",
                       "as root: sysctl -w kernel.unprivileged_userns_clone=1");
  }
  if (IsAppArmorInTheWay(code)) {
    return RefusedUser(std::string("AppArmor forbids it: ") + kAppArmor +
                           " is 1, as on Ubuntu",
                       kAppArmorRemedy);
  }
  if (IsInChroot()) {
    return RefusedUser("this process is in a chroot",
                       "run txfs outside of the chroot");
  }
  if (OwnStatus("Seccomp") == "2") {
    return RefusedUser(
        "a seccomp filter forbids it, as that of a container does",
        "start the container with --security-opt seccomp=unconfined, or run "
        "txfs outside of it");
  }
  return RefusedUser(::strerror(code),
                     "a security module forbids it: allow user namespaces "
                     "there, or run txfs outside of this container");
}

Probe ExplainNoIds(int code) {
  if (IsAppArmorInTheWay(code)) {
    return {kUserName, Probe::State::kFail,
            std::string("a user namespace has no rights: AppArmor takes them, "
                        "since ") +
                kAppArmor + " is 1, as on Ubuntu",
            kAppArmorRemedy};
  }
  return {kUserName, Probe::State::kFail,
          std::string("no ids can be mapped in a user namespace: ") +
              ::strerror(code),
          ::geteuid() == 0
              ? "give the container the capabilities SETUID and SETGID"
              : "run txfs outside of this sandbox or container"};
}

/// What bwrap says, and what helps.
struct BwrapRemedy {
  std::string_view needle, hint;
};
constexpr std::array kBwrapRemedies = {
    BwrapRemedy{"Unknown option", "install bubblewrap 0.8 or later"},
    BwrapRemedy{"mount proc",
                "parts of /proc are covered, as in a container: start it with "
                "--security-opt systempaths=unconfined (podman: --security-opt "
                "unmask=ALL)"},
    BwrapRemedy{"max_",
                "as root: raise user.max_user_namespaces and the other "
                "limits in /proc/sys/user"},
    BwrapRemedy{"namespace", "see user-namespace and mount-namespace"},
    BwrapRemedy{"", "mend what bwrap names, or install bubblewrap again"},
};

Probe NoSandbox(const std::string& said) {
  if (said.empty()) {
    return {kSandboxName, Probe::State::kFail,
            "no sandbox starts: the namespaces around it cannot be made",
            "see user-namespace and mount-namespace"};
  }
  const auto* remedy = kBwrapRemedies.data();
  while (!said.contains(remedy->needle)) ++remedy;
  const bool is_apparmor =
      said.contains("Permission denied") || said.contains("not permitted");
  return {kSandboxName, Probe::State::kFail, "no sandbox starts: " + said,
          is_apparmor && IsAppArmorInTheWay(EPERM) ? kAppArmorRemedy
                                                   : std::string(remedy->hint)};
}

/// Runs `true` in a sandbox; what is said goes to `messages`.
[[noreturn]] void RunTrial(int messages) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(messages, STDOUT_FILENO);
  ::dup2(messages, STDERR_FILENO);
  Sandbox sandbox;
  sandbox.directory = "/";
  const char* path = std::getenv("PATH");
  if (path != nullptr) sandbox.environment.emplace_back("PATH", path);
  const auto ended =
      RunSandboxed(sandbox, {"true"}, {.timeout_ms = kSandboxMs}, {});
  if (!ended) ::dprintf(STDERR_FILENO, "%s", ended.error().ToString().c_str());
  if (ended) ::dprintf(STDERR_FILENO, "%s", ended->said.c_str());
  if (ended && ended->why == Ended::Why::kTimeout) {
    ::dprintf(STDERR_FILENO, "it did not end in time");
  }
  ::_exit(ended && ended->why == Ended::Why::kItself && ended->code == 0 ? 0
                                                                         : 1);
}

/// All that comes from `fd`, as one line.
std::string ReadLineOf(int fd) {
  std::string text;
  std::array<char, 512> piece{};
  for (;;) {
    const ssize_t n = ::read(fd, piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(piece.data(), static_cast<size_t>(n));
  }
  while (text.ends_with('\n')) text.pop_back();
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

std::string FindProgram(const std::string& program) {
  const char* path = std::getenv("PATH");
  // As execvp(3) without a PATH.
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  for (;;) {
    const size_t colon = rest.find(':');
    const std::string directory(rest.substr(0, colon));
    const std::string file =
        (directory.empty() ? "." : directory) + "/" + program;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (colon == std::string_view::npos) return "";
    rest.remove_prefix(colon + 1);
  }
}

std::string OwnStatus(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":\t")) return line.substr(name.size() + 2);
  }
  return "";
}

Probe ProbeBwrap() {
  const std::string program = FindProgram("bwrap");
  if (!program.empty()) {
    return {"bwrap", Probe::State::kOk, "bwrap is " + program};
  }
  return {"bwrap", Probe::State::kFail,
          "bwrap, which makes the sandbox, is not in PATH",
          "install it: apt install bubblewrap"};
}

Probe ProbeUserNamespace() {
  using Step = NamespaceTrial::Step;
  const NamespaceTrial trial = TryNamespaces();
  if (trial.step == Step::kUser) return ExplainNoUser(trial.code);
  if (trial.step == Step::kIds) return ExplainNoIds(trial.code);
  return {kUserName, Probe::State::kOk, "user namespaces can be made"};
}

Probe ProbeMountNamespace() {
  using Step = NamespaceTrial::Step;
  const NamespaceTrial trial = TryNamespaces();
  if (trial.step == Step::kDone) {
    return {kMountName, Probe::State::kOk,
            "a mount namespace can be made that is private"};
  }
  if (trial.step < Step::kMount) {
    return {kMountName, Probe::State::kFail,
            "no private mount namespace can be made without a user namespace",
            "see user-namespace"};
  }
  std::string remedy = "run txfs outside of this sandbox or container";
  if (trial.code == ENOSPC) {
    remedy = "as root: sysctl -w user.max_mnt_namespaces=15000";
  }
  if (IsAppArmorInTheWay(trial.code)) remedy = kAppArmorRemedy;
  return {kMountName, Probe::State::kFail,
          std::string("no private mount namespace can be made: ") +
              ::strerror(trial.code),
          std::move(remedy)};
}

Probe ProbeSandbox() {
  if (FindProgram("bwrap").empty()) {
    return {kSandboxName, Probe::State::kFail,
            "no sandbox starts without bwrap", "see bwrap"};
  }
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return FailedProbe(kSandboxName, {.code = errno, .message = "pipe"});
  }
  const UniqueFd read(ends[0]);
  UniqueFd write(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return FailedProbe(kSandboxName,
                       {.code = errno, .message = "cannot start a process"});
  }
  if (child == 0) RunTrial(write.get());
  write.Reset();
  const std::string said = ReadLineOf(read.get());
  int state = 0;
  while (::waitpid(child, &state, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(state) && WEXITSTATUS(state) == 0) {
    return {kSandboxName, Probe::State::kOk, "a command runs in a sandbox"};
  }
  return NoSandbox(said);
}

Error WhyNoSandbox(const std::string& said, const std::string& options) {
  for (const auto probe :
       {ProbeBwrap, ProbeUserNamespace, ProbeMountNamespace, ProbeSandbox}) {
    const Probe found = probe();
    if (found.state != Probe::State::kFail) continue;
    return {.code = 0, .message = found.meaning, .hint = found.remedy};
  }
  return {.code = 0,
          .message = "bwrap did not start the command" +
                     (said.empty() ? "" : ": " + said),
          .hint = "a plain sandbox does start here: try again" +
                  (options.empty() ? "" : ", without " + options)};
}

}  // namespace txfs::cli

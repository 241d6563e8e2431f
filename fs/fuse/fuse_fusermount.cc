#include "fs/fuse/fuse_fusermount.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstring>
#include <string_view>
#include <vector>

namespace txfs {
namespace {

constexpr const char* kProgram = "fusermount3";
// The child's end of the socket has the same number in every run.
constexpr int kChildSocket = 3;
constexpr const char* kSocketVariable = "_FUSE_COMMFD=3";

struct Pair {
  UniqueFd ours, theirs;
};

Result<Pair> MakePipe() {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return Fail(errno, "pipe");
  return Pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

Result<Pair> MakeSocketPair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) {
    return Fail(errno, "socketpair");
  }
  return Pair{UniqueFd(fds[0]), UniqueFd(fds[1])};
}

class SpawnActions {
 public:
  SpawnActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~SpawnActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void Dup(int from, int to) {
    ::posix_spawn_file_actions_adddup2(&actions_, from, to);
  }
  [[nodiscard]] const posix_spawn_file_actions_t* get() const {
    return &actions_;
  }

 private:
  posix_spawn_file_actions_t actions_{};
};

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> Environment() {
  std::vector<std::string> out{kSocketVariable};
  for (char** v = environ; *v != nullptr; ++v) {
    if (!std::string_view(*v).starts_with("_FUSE_COMMFD="))
      out.emplace_back(*v);
  }
  return out;
}

Result<pid_t> Spawn(std::vector<std::string> arguments, int socket,
                    int messages) {
  SpawnActions actions;
  // Messages first: `socket` may be descriptor 2, `messages` descriptor 3, when
  // the standard ones are closed.
  const UniqueFd spare(::fcntl(socket, F_DUPFD_CLOEXEC, 10));
  if (!spare.valid()) return Fail(errno, "dup");
  actions.Dup(messages, 1);
  actions.Dup(1, 2);
  actions.Dup(spare.get(), kChildSocket);
  std::vector<std::string> environment = Environment();
  pid_t pid = 0;
  const int error =
      ::posix_spawnp(&pid, kProgram, actions.get(), nullptr,
                     Pointers(arguments).data(), Pointers(environment).data());
  if (error == ENOENT) {
    return Fail(ErrorKind::kFailed, 0, "fusermount3 not found",
                "install it: apt install fuse3");
  }
  if (error != 0) return Fail(error, "run fusermount3");
  return pid;
}

std::string ReadAll(int fd) {
  std::string text;
  char chunk[512];
  for (;;) {
    const ssize_t n = ::read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(chunk, static_cast<size_t>(n));
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

/// Whether it ended with success; also when somebody else reaped it.
bool Wait(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

UniqueFd ReceiveFd(int socket) {
  char byte = 0;
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  const cmsghdr* header = n > 0 ? CMSG_FIRSTHDR(&message) : nullptr;
  if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return UniqueFd();
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  return UniqueFd(fd);
}

struct Remedy {
  std::string_view needle;  ///< in what fusermount3 printed
  int code;
  std::string_view hint;
};

constexpr Remedy kRemedies[] = {
    {"user_allow_other", EPERM,
     "add the line user_allow_other to /etc/fuse.conf, or mount without "
     "--allow-other"},
    {"mount_max", EPERM, "raise mount_max in /etc/fuse.conf"},
    {"modprobe", ENODEV, "load the fuse kernel module: modprobe fuse"},
    {"no write access", EACCES, "mount on a directory of your own"},
    {"failed to access mountpoint", EACCES,
     "mount on a directory that lies in no other FUSE mount"},
    {"is forbidden", EPERM,
     "mount on a directory that lies in no other FUSE mount"},
    {"Operation not permitted", EPERM,
     "fusermount3 must be set-user-ID root: reinstall the package fuse3"},
    {"failed to open /dev/fuse", EACCES, "as root: chmod 666 /dev/fuse"},
    {"failed to open /etc/mtab", ENOENT,
     "as root: ln -s /proc/self/mounts /etc/mtab"},
    {"not found in", EINVAL,
     "only the user who mounted it may unmount it: run as that user, or as "
     "root"},
    {"Invalid argument", EINVAL, ""},
    {"busy", EBUSY, ""},
    {"", EIO, ""},
};

const Remedy& FindRemedy(std::string_view printed) {
  const Remedy* remedy = kRemedies;
  while (!printed.contains(remedy->needle)) ++remedy;
  return *remedy;
}

std::unexpected<Error> Explain(std::string_view what, std::string_view path,
                               std::string_view printed) {
  const Remedy& remedy = FindRemedy(printed);
  std::string message = std::string(what) + " " + std::string(path);
  // The text of the errno is added by whoever shows the error.
  const std::string reason = std::string(": ") + strerrordesc_np(remedy.code);
  if (printed.ends_with(reason)) printed.remove_suffix(reason.size());
  if (!printed.empty()) message += ": " + std::string(printed);
  return Fail(remedy.code == EBUSY ? ErrorKind::kBusy : ErrorKind::kFailed,
              remedy.code, message, remedy.hint);
}

}  // namespace

Result<UniqueFd> FusermountMount(const std::string& mountpoint,
                                 const std::string& options) {
  Pair socket = TRY(MakeSocketPair());
  Pair messages = TRY(MakePipe());
  const pid_t pid = TRY(Spawn({kProgram, "-o", options, "--", mountpoint},
                              socket.theirs.get(), messages.theirs.get()));
  socket.theirs.Reset();
  messages.theirs.Reset();
  UniqueFd fd = ReceiveFd(socket.ours.get());
  const std::string printed = ReadAll(messages.ours.get());
  Wait(pid);
  if (!fd.valid()) return Explain("cannot mount at", mountpoint, printed);
  return fd;
}

Status FusermountUnmount(const std::string& mountpoint, bool lazy) {
  Pair messages = TRY(MakePipe());
  std::vector<std::string> arguments{kProgram, "-u"};
  if (lazy) arguments.emplace_back("-z");
  arguments.insert(arguments.end(), {"--", mountpoint});
  const pid_t pid = TRY(Spawn(std::move(arguments), messages.theirs.get(),
                              messages.theirs.get()));
  messages.theirs.Reset();
  const std::string printed = ReadAll(messages.ours.get());
  if (Wait(pid) && printed.empty()) return {};
  return Explain("cannot unmount", mountpoint, printed);
}

}  // namespace txfs

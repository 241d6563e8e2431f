#include "tests/fuse/served_mount.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "fs/fuse/fuse_mount.h"

namespace txfs::testing {
namespace {

constexpr unsigned kDeadlineSeconds = 60;

// For the handler of SIGALRM, which may call nothing but system calls.
char g_mountpoint[4096];
volatile sig_atomic_t g_child = 0;

void GiveUp(int) {
  if (::umount2(g_mountpoint, MNT_DETACH) != 0) {
    // What an ordinary user mounted fusermount3 takes away.
    const pid_t helper = ::fork();
    if (helper == 0) {
      ::execl("/usr/bin/fusermount3", "fusermount3", "-uz", g_mountpoint,
              nullptr);
      ::_exit(1);
    }
    if (helper > 0) ::waitpid(helper, nullptr, 0);
  }
  if (g_child > 0) ::kill(g_child, SIGKILL);
  constexpr char kText[] = "test hung: mount removed\n";
  (void)!::write(2, kText, sizeof kText - 1);
  ::_exit(1);
}

void StartDeadline(const std::string& mountpoint) {
  mountpoint.copy(g_mountpoint, sizeof g_mountpoint - 1);
  ::signal(SIGALRM, GiveUp);
  ::alarm(kDeadlineSeconds);
}

template <class T>
T* Shared() {
  void* memory = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return new (memory) T();
}

int CodeOf(const Status& status) { return status ? 0 : status.error().code; }

/// Carries out the test's commands until its end of `socket` is closed.
void Control(int socket, const ServeOptions& options, MemoryFilesystem& fs,
             FuseSession& session) {
  char command = 0;
  while (::read(socket, &command, 1) == 1) {
    int code = 0;
    if (command == 's') session.Stop();
    if (command == 'u') code = CodeOf(session.Unmount(false));
    if (command == 'l') code = CodeOf(session.Unmount(true));
    if (command == 'i') session.Invalidate(fs.Swap("swapped"));
    if (command == 'a') session.Announce(options.events);
    (void)!::write(socket, &code, sizeof code);
  }
}

/// 'r', or 'e' and the text of the error.
void Report(int socket, const std::string& text) {
  (void)!::write(socket, text.data(), text.size());
}

int Serve(const ServeOptions& options, CallLog& log, int socket) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kDeadlineSeconds);
  if (options.uid != ::geteuid() &&
      (::setgid(options.uid) != 0 || ::setuid(options.uid) != 0)) {
    Report(socket, "esetuid");
    return 1;
  }
  MemoryFilesystem fs(log);
  options.prepare(fs);
  auto session = FuseSession::Mount(fs, options.mount);
  if (!session) {
    Report(socket,
           "e" + session.error().ToString() + " | " + session.error().hint);
    return 1;
  }
  Report(socket, "r");
  std::thread control([&] { Control(socket, options, fs, **session); });
  const int code = CodeOf((*session)->Run());
  // The reply to "unmount" may still be due.
  ::shutdown(socket, SHUT_RD);
  control.join();
  return code;
}

}  // namespace

ServedMount::ServedMount(ServeOptions options) : log_(Shared<CallLog>()) {
  char path[] = "/tmp/txfs-fuse-test.XXXXXX";
  if (::mkdtemp(path) == nullptr) std::abort();
  path_ = path;
  if (options.uid != ::geteuid() &&
      ::chown(path, options.uid, options.uid) != 0) {
    std::abort();
  }
  options.mount.mountpoint = path_;
  if (options.mount.source.empty()) options.mount.source = "/the/workspace";
  StartDeadline(path_);
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    std::abort();
  }
  control_.Reset(sockets[0]);
  const UniqueFd theirs(sockets[1]);
  pid_ = ::fork();
  if (pid_ == 0) {
    control_.Reset();
    ::_exit(Serve(options, *log_, theirs.get()));
  }
  g_child = pid_;
  ReadReadiness();
}

void ServedMount::ReadReadiness() {
  char text[4096];
  const ssize_t n = ::read(control_.get(), text, sizeof text);
  if (n >= 1 && text[0] == 'r') return;
  error_ = n < 1 ? "the server died"
                 : std::string(text + 1, static_cast<size_t>(n) - 1);
}

int ServedMount::Ask(char command) {
  int code = -1;
  if (::write(control_.get(), &command, 1) != 1 ||
      ::read(control_.get(), &code, sizeof code) != sizeof code) {
    return -1;
  }
  return code;
}

int ServedMount::WaitForEnd() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  g_child = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void ServedMount::Kill() {
  ::kill(pid_, SIGKILL);
  WaitForEnd();
}

ServedMount::~ServedMount() {
  // Before anything that could block on the mount.
  (void)UnmountPath(path_, /*lazy=*/true);
  if (pid_ > 0) Kill();
  ::rmdir(path_.c_str());
  ::alarm(0);
  ::munmap(log_, sizeof(CallLog));
}

}  // namespace txfs::testing

#include "fs/fuse/fuse_announce.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <memory>
#include <optional>
#include <random>
#include <system_error>
#include <thread>
#include <utility>

#include "fs/fuse/fuse_reply.h"

namespace txfs {
namespace {

using Kind = PathEvent::Kind;

/// Opens without access, and only within the mount of `at`: what another
/// filesystem has at a path is not ours to touch.
UniqueFd OpenPath(int at, const std::string& path, uint64_t flags) {
  if (path.empty()) return UniqueFd(::fcntl(at, F_DUPFD_CLOEXEC, 0));
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC | O_NOFOLLOW | flags;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_openat2, at, path.c_str(), &how, sizeof how)));
}

std::string ProbeName() {
  std::random_device device;
  return ".txfs-probe-" + std::to_string(device()) + std::to_string(device());
}

}  // namespace

void Announcer::End() {
  ended_ = true;
  const MutexLock lock(mutex_);
}

void Announcer::Await() { const MutexLock lock(mutex_); }

void Announcer::Announce(const std::vector<PathEvent>& events) {
  const MutexLock lock(mutex_);
  if (ended_) return;
  {
    const MutexLock forget_lock(forget_mutex_);
    done_ = false;
  }
  std::thread thread;
  try {
    thread = std::thread([&] {
      mutex_.AssertHeld();
      AnnounceApart(events);
    });
  } catch (const std::system_error&) {
    return;  // no thread is to be had
  }
  ForgetNames();
  thread.join();
}

void Announcer::AnnounceApart(const std::vector<PathEvent>& events) {
  // Standard streams stay, so that no file of the mount gets their numbers.
  if (::close_range(STDERR_FILENO + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0) {
    thread_ = ::gettid();
    // Whatever happens: another thread may get the number later.
    const std::unique_ptr<std::atomic<pid_t>, void (*)(std::atomic<pid_t>*)>
        reset(&thread_, [](std::atomic<pid_t>* thread) { *thread = 0; });
    AnnounceAll(events);
  }
  const MutexLock lock(forget_mutex_);
  done_ = true;
  forget_changed_.NotifyAll();
}

void Announcer::AnnounceAll(const std::vector<PathEvent>& events) {
  // It is not kept, because it would keep the mount busy.
  const UniqueFd root = OpenRoot();
  if (!root.valid()) return;
  std::optional<std::string> opened;
  UniqueFd directory;
  for (const PathEvent& event : events) {
    if (ended_) return;
    if (opened != event.directory) {
      directory = OpenPath(root.get(), event.directory, O_DIRECTORY);
      opened = event.directory;
    }
    if (!directory.valid()) continue;
    if (!AnnounceOne(directory.get(), event)) return;
  }
}

/// Only a filesystem that this session serves knows the probe: the mount may be
/// gone, or covered by another one.
UniqueFd Announcer::OpenRoot() {
  UniqueFd root(::open(mountpoint_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct statfs kind{};
  const bool is_fuse = root.valid() && ::fstatfs(root.get(), &kind) == 0 &&
                       kind.f_type == FUSE_SUPER_MAGIC;
  if (!is_fuse) return {};
  const std::string name = ProbeName();
  {
    const MutexLock lock(expected_mutex_);
    reached_ = false;
  }
  Expect(
      {.what = Expected::What::kProbe, .parent = FUSE_ROOT_ID, .name = name});
  std::ignore = ::faccessat(root.get(), name.c_str(), F_OK, 0);
  Expect({});
  const MutexLock lock(expected_mutex_);
  return reached_ ? std::move(root) : UniqueFd();
}

bool Announcer::AnnounceOne(int directory, const PathEvent& event) {
  switch (event.kind) {
    case Kind::kCame: {
      const int error = Make(directory, event);
      // Another process has looked at it, which makes it known to the kernel.
      return (error == EEXIST ? Touch(directory, event) : error) != EROFS;
    }
    case Kind::kWent: {
      int error = Remove(directory, event);
      // Another process has looked for it: the kernel knows that it is gone.
      for (int i = 0; i < 3 && error == ENOENT; ++i) {
        ForgetName(event);
        error = Remove(directory, event);
      }
      return error != EROFS;
    }
    case Kind::kChanged:
      return Touch(directory, event) != EROFS;
  }
  return true;
}

int Announcer::Make(int directory, const PathEvent& event) {
  Expect({.what = Expected::What::kMake,
          .parent = Raw(event.parent),
          .name = event.name});
  const int made =
      event.is_directory
          ? ::mkdirat(directory, event.name.c_str(), 0700)
          : ::mknodat(directory, event.name.c_str(), S_IFREG | 0600, 0);
  const int error = made == 0 ? 0 : errno;
  Expect({});
  // The placeholder goes. The next lookup finds the object.
  if (error == 0) ForgetName(event);
  return error;
}

int Announcer::Remove(int directory, const PathEvent& event) {
  Expect({.what = Expected::What::kRemove,
          .parent = Raw(event.parent),
          .name = event.name,
          .type = event.is_directory ? mode_t{S_IFDIR} : mode_t{S_IFREG}});
  const int removed = ::unlinkat(directory, event.name.c_str(),
                                 event.is_directory ? AT_REMOVEDIR : 0);
  const int error = removed == 0 ? 0 : errno;
  Expect({});
  return error;
}

/// Programs expect a change of content of a file that is written, and of
/// attributes for a directory: the kernel derives that from the times that are
/// set.
int Announcer::Touch(int directory, const PathEvent& event) {
  const UniqueFd object = OpenPath(directory, event.name, 0);
  if (!object.valid()) return errno;
  const timespec times[] = {
      {.tv_sec = 0, .tv_nsec = event.is_directory ? 0 : UTIME_OMIT},
      {.tv_sec = 0, .tv_nsec = 0}};
  Expect({.what = Expected::What::kTouch, .name = {}});
  int set = ::utimensat(object.get(), "", times, AT_EMPTY_PATH);
  // Of a file of another user only a change to now is allowed, with the right
  // to write.
  if (set != 0 && errno == EPERM) {
    set = ::utimensat(object.get(), "", nullptr, AT_EMPTY_PATH);
  }
  const int error = set == 0 ? 0 : errno;
  Expect({});
  return error;
}

/// The caller of Announce does it: it has /dev/fuse.
void Announcer::ForgetName(const PathEvent& event) {
  const MutexLock lock(forget_mutex_);
  forget_ = &event;
  forget_changed_.NotifyAll();
  while (forget_ != nullptr) forget_changed_.Wait(forget_mutex_);
}

/// Until the thread is at its end.
void Announcer::ForgetNames() {
  const MutexLock lock(forget_mutex_);
  while (!done_) {
    if (forget_ == nullptr) {
      forget_changed_.Wait(forget_mutex_);
      continue;
    }
    std::ignore = fuse_lowlevel_notify_inval_entry(
        session_, Raw(forget_->parent), forget_->name.c_str(),
        forget_->name.size());
    forget_ = nullptr;
    forget_changed_.NotifyAll();
  }
}

void Announcer::Expect(Expected expected) {
  const MutexLock lock(expected_mutex_);
  expected_ = std::move(expected);
}

std::optional<Announcer::Expected> Announcer::Find(Expected::What what,
                                                   fuse_ino_t parent,
                                                   std::string_view name) {
  const MutexLock lock(expected_mutex_);
  if (expected_.what != what || expected_.parent != parent ||
      expected_.name != name) {
    return std::nullopt;
  }
  if (what == Expected::What::kProbe) reached_ = true;
  return expected_;
}

void Announcer::OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name) {
  using What = Expected::What;
  // An error is not cached, and what the kernel does not cache it asks for.
  if (Find(What::kProbe, parent, name) || Find(What::kMake, parent, name)) {
    fuse_reply_err(req, ENOENT);
    return;
  }
  const auto node =
      Guard([&] { return filesystem_.Lookup(Ino{parent}, name); });
  const auto removed = Find(What::kRemove, parent, name);
  if (!node && node.error().code == ENOENT && removed) {
    ReplyPlaceholder(req, removed->type);
    return;
  }
  ReplyLookup(req, filesystem_, Ino{parent}, node);
}

void Announcer::OnMake(fuse_req_t req, fuse_ino_t parent, const char* name,
                       mode_t mode) {
  if (!Find(Expected::What::kMake, parent, name)) {
    fuse_reply_err(req, EPERM);
    return;
  }
  ReplyPlaceholder(req, mode & S_IFMT);
}

/// What a process has made there meanwhile stays: the kernel must not take it
/// for deleted.
void Announcer::OnRemove(fuse_req_t req, fuse_ino_t parent, const char* name) {
  if (!Find(Expected::What::kRemove, parent, name)) {
    fuse_reply_err(req, EPERM);
    return;
  }
  const auto node =
      Guard([&] { return filesystem_.Lookup(Ino{parent}, name); });
  if (node) {
    (void)Guard([&]() -> Status {
      filesystem_.Forget(node->ino, 1);
      return {};
    });
    fuse_reply_err(req, EBUSY);
    return;
  }
  fuse_reply_err(req, node.error().code == ENOENT ? 0 : node.error().code);
}

void Announcer::OnSetAttr(fuse_req_t req, fuse_ino_t ino, int to_set) {
  constexpr int kTimes = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW |
                         FUSE_SET_ATTR_MTIME | FUSE_SET_ATTR_MTIME_NOW |
                         FUSE_SET_ATTR_CTIME;
  if ((to_set & ~kTimes) != 0 || !Find(Expected::What::kTouch, 0, {})) {
    fuse_reply_err(req, EPERM);
    return;
  }
  ReplyAttr(req, Guard([&] { return filesystem_.GetAttr(Ino{ino}); }));
}

/// The kernel asks again for the name before it shows it to a process.
void Announcer::ReplyPlaceholder(fuse_req_t req, mode_t mode) {
  fuse_entry_param entry{};
  entry.ino = kPlaceholderBit | next_placeholder_++;
  entry.generation = 1;
  entry.attr.st_ino = entry.ino;
  entry.attr.st_mode = mode | 0700;
  // A sticky directory admits only the owner.
  entry.attr.st_uid = ::geteuid();
  entry.attr.st_gid = ::getegid();
  entry.attr_timeout = kForever;
  fuse_reply_entry(req, &entry);
}

}  // namespace txfs

#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/fuse/fuse_libfuse.h"
#include "fs/posix/filesystem.h"
#include "fs/posix/path_event.h"
#include "journal/support/mutex.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Makes the kernel report path events to processes that watch files and
/// directories (inotify, fanotify). The kernel reports system calls only. So a
/// thread of the daemon makes system calls in the mount, and the requests that
/// they cause are answered without an effect: a name that came is created, a
/// name that went is deleted, and the times of a changed file are set.
///
/// A thread that waits for an answer to its own request cannot be killed, and a
/// daemon whose threads do not end keeps /dev/fuse open: nobody would ever
/// answer. So the thread has file descriptors of its own, without /dev/fuse.
///
/// The kernel puts the thread in each request, and no other process can have
/// its number meanwhile. Its requests that would make or remove a name or set
/// attributes are answered here, with EPERM unless it is the expected one.
class Announcer {
 public:
  /// `filesystem` and `session` outlive this.
  Announcer(Filesystem& filesystem, fuse_session* session,
            std::string mountpoint)
      : filesystem_(filesystem),
        session_(session),
        mountpoint_(std::move(mountpoint)) {}
  Announcer(const Announcer&) = delete;
  Announcer& operator=(const Announcer&) = delete;

  /// Reports `events`, on a thread of its own. Returns early if the mount is
  /// not where it was made, or is read-only, or the kernel has no
  /// close_range(2) (it is older than 5.9). Call it without a lock for which
  /// an operation waits.
  void Announce(const std::vector<PathEvent>& events) EXCLUDES(mutex_);

  /// Waits for the announcement in progress, which keeps the mount busy.
  void Await() EXCLUDES(mutex_);
  /// Waits for the announcement in progress, which needs requests to be served.
  /// Makes no further ones.
  void End() EXCLUDES(mutex_);

  /// Whether the request comes from the announcing thread. Then one of the
  /// functions below has to answer it.
  [[nodiscard]] bool IsOwn(fuse_req_t req) const {
    const pid_t thread = thread_.load(std::memory_order_acquire);
    return thread != 0 && fuse_req_ctx(req)->pid == thread;
  }
  void OnLookup(fuse_req_t req, fuse_ino_t parent, const char* name);
  void OnMake(fuse_req_t req, fuse_ino_t parent, const char* name, mode_t mode);
  void OnRemove(fuse_req_t req, fuse_ino_t parent, const char* name);
  void OnSetAttr(fuse_req_t req, fuse_ino_t ino, int to_set);

  /// Whether `ino` is a placeholder for an announced name. It has no inode.
  static bool IsPlaceholder(fuse_ino_t ino) {
    return (ino & kPlaceholderBit) != 0;
  }

 private:
  static constexpr uint64_t kPlaceholderBit = uint64_t{1} << 63;

  /// The request that the next system call causes.
  struct Expected {
    enum class What { kNothing, kProbe, kMake, kRemove, kTouch };
    What what = What::kNothing;
    fuse_ino_t parent = 0;
    std::string name;
    mode_t type = S_IFREG;  ///< kRemove
  };

  void AnnounceApart(const std::vector<PathEvent>& events) REQUIRES(mutex_);
  void AnnounceAll(const std::vector<PathEvent>& events) REQUIRES(mutex_);
  [[nodiscard]] UniqueFd OpenRoot() REQUIRES(mutex_);
  /// Returns false if no further event can succeed.
  bool AnnounceOne(int directory, const PathEvent& event) REQUIRES(mutex_);
  int Make(int directory, const PathEvent& event) REQUIRES(mutex_);
  int Remove(int directory, const PathEvent& event) REQUIRES(mutex_);
  int Touch(int directory, const PathEvent& event) REQUIRES(mutex_);
  void ForgetName(const PathEvent& event) EXCLUDES(forget_mutex_);
  void ForgetNames() EXCLUDES(forget_mutex_);
  void Expect(Expected expected) EXCLUDES(expected_mutex_);
  /// The expected request, if it is this one.
  [[nodiscard]] std::optional<Expected> Find(Expected::What what,
                                             fuse_ino_t parent,
                                             std::string_view name)
      EXCLUDES(expected_mutex_);
  void ReplyPlaceholder(fuse_req_t req, mode_t mode);

  Filesystem& filesystem_;
  fuse_session* const session_;
  const std::string mountpoint_;
  Mutex mutex_;  ///< one announcement at a time; before expected_mutex_
  std::atomic<bool> ended_ = false;
  std::atomic<pid_t> thread_ = 0;  ///< that announces; 0: none
  std::atomic<uint64_t> next_placeholder_ = 0;
  Mutex forget_mutex_;
  CondVar forget_changed_;
  /// What the caller of Announce is to notify the kernel of, for the thread.
  const PathEvent* forget_ GUARDED_BY(forget_mutex_) = nullptr;
  bool done_ GUARDED_BY(forget_mutex_) = false;  ///< the thread is at its end
  Mutex expected_mutex_;
  Expected expected_ GUARDED_BY(expected_mutex_);
  bool reached_ GUARDED_BY(expected_mutex_) = false;  ///< by the probe
};

}  // namespace txfs

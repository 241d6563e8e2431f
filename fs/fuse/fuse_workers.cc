#include "fs/fuse/fuse_workers.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "journal/support/mutex.h"

namespace txfs {
namespace {

class Workers;
/// That the thread is one of.
thread_local Workers* t_workers = nullptr;

class Workers {
 public:
  using Answer = std::function<bool(ByteSpan request)>;
  Workers(fuse_session* session, int wake, const Answer& answer)
      : session_(session), wake_(wake), answer_(answer) {}
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { Join(); }

  Status Start(unsigned count) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    // Signals are for the threads of the program. Those that come later are
    // started by these.
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = 0;
    {
      const MutexLock lock(mutex_);
      for (unsigned i = 0; i < count && error == 0; ++i) error = Add();
      needed_ = threads_.size();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0 && needed_ == 0) return Fail(error, "cannot start a thread");
    return {};
  }

  /// Cancels reads that wait for a request; finishes requests in progress.
  void Join() {
    std::vector<pthread_t> threads;
    {
      const MutexLock lock(mutex_);
      ends_ = true;
      threads.swap(threads_);
    }
    for (const pthread_t thread : threads) ::pthread_cancel(thread);
    for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  }

  /// As many as ever serve while one more waits. Threads stay: the next wait
  /// has them.
  bool BeginWait() {
    const MutexLock lock(mutex_);
    if (ends_) return false;
    const bool enough = threads_.size() > needed_ + waiting_;
    if (!enough && Add() != 0) return false;
    ++waiting_;
    return true;
  }

  void EndWait() {
    const MutexLock lock(mutex_);
    --waiting_;
  }

  [[nodiscard]] int error() const { return error_; }

 private:
  /// 0, or an errno.
  int Add() REQUIRES(mutex_) {
    pthread_t thread{};
    const int error = ::pthread_create(&thread, nullptr, Main, this);
    if (error == 0) threads_.push_back(thread);
    return error;
  }

  static void* Main(void* self) {
    t_workers = static_cast<Workers*>(self);
    t_workers->Serve();
    return nullptr;
  }

  // Blocking in read(2) is the fastest way to wait for a request (an epoll in
  // front of it costs a tenth); cancellation ends the wait without a race.
  void Serve() {
    ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    struct Buffer : fuse_buf {
      ~Buffer() { std::free(mem); }
    } buffer{};
    int n = 0;
    while ((n = Receive(buffer)) > 0) {
      const auto* bytes = static_cast<const std::byte*>(buffer.mem);
      if (answer_({bytes, static_cast<size_t>(n)})) continue;
      fuse_session_process_buf(session_, &buffer);
    }
    if (n < 0) error_ = -n;
    const uint64_t one = 1;
    (void)!::write(wake_, &one, sizeof one);
  }

  /// Bytes of the next request; 0: the mount is gone; else a negative errno.
  int Receive(fuse_buf& buffer) {
    for (;;) {
      ::pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
      const int n = fuse_session_receive_buf(session_, &buffer);
      ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
      if (n != -EINTR && n != -EAGAIN) return n;
    }
  }

  fuse_session* session_;
  int wake_;
  const Answer& answer_;
  Mutex mutex_;
  std::vector<pthread_t> threads_ GUARDED_BY(mutex_);
  size_t needed_ = 0;  ///< to serve; set before the first request
  size_t waiting_ GUARDED_BY(mutex_) = 0;
  bool ends_ GUARDED_BY(mutex_) = false;
  std::atomic<int> error_{0};
};

Status WaitFor(int eventfd) {
  uint64_t count = 0;
  while (::read(eventfd, &count, sizeof count) < 0) {
    if (errno != EINTR) return Fail(errno, "wait for the end of the mount");
  }
  return {};
}

}  // namespace

bool BeginStandIn() { return t_workers != nullptr && t_workers->BeginWait(); }

void EndStandIn() { t_workers->EndWait(); }

Status ServeUntilWoken(fuse_session* session, unsigned threads, int wake,
                       const std::function<bool(ByteSpan request)>& answer,
                       const std::function<void()>& ends) {
  Workers workers(session, wake, answer);
  TRY(workers.Start(threads));
  const Status woken = WaitFor(wake);
  ends();
  workers.Join();
  TRY(woken);
  if (workers.error() != 0) {
    return Fail(workers.error(), "cannot read from /dev/fuse");
  }
  return {};
}

}  // namespace txfs

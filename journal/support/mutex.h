#pragma once

#include <pthread.h>

#include <condition_variable>
#include <mutex>

// Annotations for clang's -Wthread-safety; nothing elsewhere.
#if defined(__clang__)
#define TXFS_THREAD(x) __attribute__((x))
#else
#define TXFS_THREAD(x)
#endif
#define CAPABILITY(x) TXFS_THREAD(capability(x))
#define SCOPED_CAPABILITY TXFS_THREAD(scoped_lockable)
#define GUARDED_BY(x) TXFS_THREAD(guarded_by(x))
#define PT_GUARDED_BY(x) TXFS_THREAD(pt_guarded_by(x))
#define REQUIRES(...) TXFS_THREAD(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) \
  TXFS_THREAD(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) TXFS_THREAD(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) TXFS_THREAD(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) TXFS_THREAD(acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) TXFS_THREAD(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) TXFS_THREAD(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) \
  TXFS_THREAD(release_generic_capability(__VA_ARGS__))
#define ASSERT_SHARED_CAPABILITY(x) TXFS_THREAD(assert_shared_capability(x))
#define ASSERT_CAPABILITY(x) TXFS_THREAD(assert_capability(x))
#define ACQUIRED_BEFORE(...) TXFS_THREAD(acquired_before(__VA_ARGS__))
#define ACQUIRED_AFTER(...) TXFS_THREAD(acquired_after(__VA_ARGS__))
#define RETURN_CAPABILITY(x) TXFS_THREAD(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS TXFS_THREAD(no_thread_safety_analysis)

namespace txfs {

/// std::mutex known to the thread-safety analysis.
class CAPABILITY("mutex") Mutex {
 public:
  void Lock() ACQUIRE() { mutex_.lock(); }
  void Unlock() RELEASE() { mutex_.unlock(); }
  /// Says to the analysis, where it cannot see it, that the thread that called
  /// this function's caller holds the lock. Checks nothing.
  void AssertHeld() const ASSERT_CAPABILITY(this) {}

 private:
  friend class CondVar;
  std::mutex mutex_;
};

class SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~MutexLock() RELEASE() { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Condition variable over Mutex. Spurious wake-ups happen: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  template <class Duration>
  void WaitFor(Mutex& mutex, Duration duration) REQUIRES(mutex) {
    std::unique_lock lock(mutex.mutex_, std::adopt_lock);
    condition_.wait_for(lock, duration);
    lock.release();
  }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

/// Readers-writer lock known to the thread-safety analysis. A waiting writer
/// precedes new readers (a commit must not starve under load), so a thread must
/// never take the shared lock twice.
class CAPABILITY("shared mutex") SharedMutex {
 public:
  SharedMutex() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes,
                                  PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~SharedMutex() { pthread_rwlock_destroy(&lock_); }
  SharedMutex(const SharedMutex&) = delete;
  SharedMutex& operator=(const SharedMutex&) = delete;

  void Lock() ACQUIRE() { pthread_rwlock_wrlock(&lock_); }
  void Unlock() RELEASE() { pthread_rwlock_unlock(&lock_); }
  void LockShared() ACQUIRE_SHARED() { pthread_rwlock_rdlock(&lock_); }
  void UnlockShared() RELEASE_SHARED() { pthread_rwlock_unlock(&lock_); }
  /// As Mutex::AssertHeld, for the shared side.
  void AssertHeldShared() const ASSERT_SHARED_CAPABILITY(this) {}

 private:
  pthread_rwlock_t lock_;
};

class SCOPED_CAPABILITY WriterLock {
 public:
  explicit WriterLock(SharedMutex& mutex) ACQUIRE(mutex) : mutex_(mutex) {
    mutex_.Lock();
  }
  ~WriterLock() RELEASE() { mutex_.Unlock(); }
  WriterLock(const WriterLock&) = delete;
  WriterLock& operator=(const WriterLock&) = delete;

 private:
  SharedMutex& mutex_;
};

class SCOPED_CAPABILITY ReaderLock {
 public:
  explicit ReaderLock(SharedMutex& mutex) ACQUIRE_SHARED(mutex)
      : mutex_(mutex) {
    mutex_.LockShared();
  }
  ~ReaderLock() RELEASE_GENERIC() { mutex_.UnlockShared(); }
  ReaderLock(const ReaderLock&) = delete;
  ReaderLock& operator=(const ReaderLock&) = delete;

 private:
  SharedMutex& mutex_;
};

}  // namespace txfs

#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace txfs::testing {

/// Where each thread of this process is in the kernel, and of all others that
/// have `mark` in their command line: names, system calls, and the kernel's
/// stacks for who may see them.
std::string WhereThreadsAre(const std::string& mark);

/// Ends a test that hangs: aborts when something takes longer than `limit`, and
/// tells on stderr what it is and WhereThreadsAre.
class Watchdog {
 public:
  Watchdog(std::string mark, std::chrono::seconds limit);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  /// This is what goes on from now on; its time begins.
  void Begin(std::string what);

 private:
  void Watch();

  const std::string mark_;
  const std::chrono::seconds limit_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_ = "the beginning";
  std::chrono::steady_clock::time_point deadline_;
  bool done_ = false;
  std::thread thread_;  // after all that it uses
};

}  // namespace txfs::testing

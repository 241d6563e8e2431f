#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace txfs {

/// Starts a thread. It is not joinable if the system cannot create one.
inline std::thread StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return {};
  }
}

/// Runs work in a thread, for which the destructor waits. If no thread can be
/// started, the destructor runs the work.
class Meanwhile {
 public:
  explicit Meanwhile(std::function<void()> work)
      : work_(std::move(work)), thread_(StartThread(work_)) {}
  ~Meanwhile() {
    if (thread_.joinable()) {
      thread_.join();
    } else {
      work_();
    }
  }
  Meanwhile(const Meanwhile&) = delete;
  Meanwhile& operator=(const Meanwhile&) = delete;

 private:
  const std::function<void()> work_;
  std::thread thread_;
};

}  // namespace txfs

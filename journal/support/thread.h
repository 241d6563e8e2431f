#pragma once

#include <functional>
#include <system_error>
#include <thread>
#include <utility>

namespace txfs {

/// One that cannot be joined when the system has none to give.
inline std::thread StartThread(std::function<void()> work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
    return {};
  }
}

/// Work that a thread does meanwhile, or the destructor, which waits for it.
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

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

}  // namespace txfs

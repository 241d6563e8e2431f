#include "journal/support/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "journal/support/thread.h"

namespace txfs {

void InParallel(size_t count, const std::function<void(size_t)>& visit) {
  // For fewer, starting a thread takes longer.
  constexpr size_t kMany = 1000;
  constexpr size_t kAtOnce = 256;
  constexpr size_t kMostThreads = 4;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (;;) {
      const size_t from = std::min(next.fetch_add(kAtOnce), count);
      if (from == count) return;
      const size_t to = from + std::min(kAtOnce, count - from);
      for (size_t i = from; i < to; ++i) visit(i);
    }
  };
  std::vector<std::thread> helpers;
  const size_t processors = std::thread::hardware_concurrency();
  const size_t wanted = count < kMany ? 1 : std::min(processors, kMostThreads);
  while (helpers.size() + 1 < wanted) helpers.push_back(StartThread(work));
  work();
  for (std::thread& helper : helpers) {
    if (helper.joinable()) helper.join();
  }
}

}  // namespace txfs

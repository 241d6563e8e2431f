#include "journal/support/memory.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <tuple>

namespace txfs {

void ShareArenas() {
#ifdef __GLIBC__
  // One would make those who work at the same time wait for each other.
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

void DeepenStacks() {
  // 12,000 levels of a kilobyte, and room to spare.
  constexpr size_t kBytes = 64 << 20;
  rlimit limit{};
  if (::getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < kBytes) {
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, kBytes);
    std::ignore = ::setrlimit(RLIMIT_STACK, &limit);
  }
#ifdef __GLIBC__
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  size_t size = 0;
  ::pthread_attr_getstacksize(&attributes, &size);
  if (size < kBytes && ::pthread_attr_setstacksize(&attributes, kBytes) == 0) {
    ::pthread_setattr_default_np(&attributes);
  }
  ::pthread_attr_destroy(&attributes);
#endif
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace txfs

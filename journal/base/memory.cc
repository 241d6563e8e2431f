#include "journal/base/memory.h"

#include <malloc.h>

namespace txfs {

void ShareArenas() {
#ifdef __GLIBC__
  // One would make those who work at the same time wait for each other.
  ::mallopt(M_ARENA_MAX, 2);
#endif
}

void ReturnFreeMemory() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

}  // namespace txfs

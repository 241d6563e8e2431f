#include "cli/run/id_map.h"

#include <cstdint>
#include <fstream>

namespace txfs::cli {

std::string IdentityMap(const char* map) {
  std::ifstream own(std::string("/proc/self/") + map);
  std::string text;
  uint64_t inside = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  while (own >> inside >> outside >> count) {
    const std::string first = std::to_string(inside);
    text += first + " " + first + " " + std::to_string(count) + "\n";
  }
  return text;
}

}  // namespace txfs::cli

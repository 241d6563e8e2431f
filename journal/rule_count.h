#pragma once

#include <cstdint>
#include <string>

namespace txfs {

/// How many operations a rule refused.
struct RuleCount {
  std::string rule;
  uint64_t count = 0;

  bool operator==(const RuleCount&) const = default;
};

}  // namespace txfs

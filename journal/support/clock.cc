#include "journal/support/types.h"

namespace txfs {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp Now() const override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return Timestamp::From(now);
  }
  [[nodiscard]] uint64_t Steady() const override {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<uint64_t>(now.tv_sec) * 1000 +
           static_cast<uint64_t>(now.tv_nsec) / 1'000'000;
  }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

}  // namespace txfs

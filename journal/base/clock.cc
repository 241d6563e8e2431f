#include "journal/base/types.h"

namespace txfs {
namespace {

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Timestamp Now() const override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return Timestamp::From(now);
  }
};

}  // namespace

const Clock& Clock::System() {
  static const SystemClock clock;
  return clock;
}

}  // namespace txfs

#include "journal/support/crash_point.h"

#include <atomic>

namespace txfs {
namespace {

std::atomic<void (*)()> crash_hook = nullptr;

}  // namespace

void CrashPoint() {
  if (auto* hook = crash_hook.load(std::memory_order_relaxed)) hook();
}

void SetCrashHook(void (*hook)()) { crash_hook = hook; }

}  // namespace txfs

#include "tests/conformance/interrupted.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <optional>
#include <set>

namespace txfs::testing {
namespace {

constexpr uint64_t kPage = 4096;
/// What one FUSE_WRITE takes at most, bytes.
constexpr uint64_t kRequest = 1 << 20;

/// Of the file that a write to `path` goes to, which may be a symlink; 0 when
/// there is none.
uint64_t SizeOf(Driver& driver, const std::string& path) {
  const auto file = driver.Open(path, O_RDONLY, 0);
  if (!file) return 0;
  const auto st = driver.StatOf(*file);
  (void)driver.Close(*file);
  return st ? static_cast<uint64_t>(st->st_size) : 0;
}

/// Where the kernel may cut a write(2) of [start, start + length) into several:
/// at the ends of pages, and where a request is full.
std::set<uint64_t> EndsBetween(uint64_t start, uint64_t length) {
  std::set<uint64_t> ends;
  const uint64_t page = start / kPage * kPage;
  for (uint64_t at = kPage; page + at < start + length; at += kPage) {
    ends.insert(page + at);
  }
  for (uint64_t at = kRequest; at < length; at += kRequest) {
    ends.insert(start + at);
  }
  return ends;
}

/// Where a step starts to write; none when it writes no content.
std::optional<uint64_t> WriteStart(const Step& step, Driver& before) {
  switch (step.kind) {
    case StepKind::kOverwrite:
      return 0;
    case StepKind::kPatch:
    case StepKind::kHeldWrite:
      return step.offset;
    case StepKind::kAppend:
      return SizeOf(before, step.path);
    default:
      return std::nullopt;
  }
}

}  // namespace

bool IsDeath(const std::string& outcome) {
  return outcome == "ENOTCONN" || outcome == "ECONNABORTED";
}

bool IsGone(Driver& driver) {
  const Status made = driver.Mkdir("is-it-gone", 0700);
  if (made) (void)driver.Rmdir("is-it-gone");
  return !made && IsDeath(ErrnoName(made.error().code));
}

bool IsCompound(const Step& step) {
  return step.kind == StepKind::kRemoveTree ||
         step.kind == StepKind::kCopyRange;
}

std::vector<Step> Prefixes(const Step& step, Driver& before) {
  std::vector<Step> prefixes;
  const auto start = WriteStart(step, before);
  Step part = step;
  if (step.kind == StepKind::kOverwrite) {
    part.length = 0;  // truncated or created, but not written yet
    prefixes.push_back(part);
  }
  const uint64_t length = start ? step.length : 0;
  if (start && step.kind != StepKind::kHeldWrite) part.kind = StepKind::kPatch;
  if (start) part.offset = static_cast<uint32_t>(*start);
  for (const uint64_t end : EndsBetween(start.value_or(0), length)) {
    part.length = static_cast<uint32_t>(end - *start);
    prefixes.push_back(part);
  }
  part.length = step.length;
  prefixes.push_back(part);
  return prefixes;
}

}  // namespace txfs::testing

#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/glob.h"
#include "policy/rule.h"

namespace txfs::policy {

/// What a limit counts.
enum class Measure : uint8_t {
  kBaseRemoved,   ///< objects that the base has and that are removed
  kBytesWritten,  ///< bytes of content
  kInodesMade,    ///< objects that the base does not have
};
[[nodiscard]] std::string_view NameOf(Measure measure);
[[nodiscard]] std::optional<Measure> MeasureNamed(std::string_view name);
/// "base_removed, bytes_written, ..."
[[nodiscard]] std::string NamesOfMeasures();

/// A [[limit]]: how much may be done. At least one of `max` and `fraction` is
/// set; if both are, the limit is exceeded only if both are.
struct Limit {
  std::string id;
  Measure of = Measure::kBaseRemoved;
  std::optional<uint64_t> max;
  std::optional<double> fraction;  ///< kBaseRemoved: of what the base has
  /// kBaseRemoved: count only paths that match one of these; empty: all.
  std::vector<Glob> paths;
  std::vector<Glob> except;  ///< kBaseRemoved: matching paths do not count
  std::vector<std::string> patterns, except_patterns;  ///< text of the globs
  std::optional<uint32_t> window;  ///< seconds; none: the whole transaction
  bool at_commit = false;          ///< judged at commit; else at the operation
  Action action = Action::kDeny;
  int error = EDQUOT;
  std::string reason, suggest;
  Place place;

  /// Whether the base object at `path` counts.
  [[nodiscard]] bool Counts(std::string_view path) const;
};

/// What `limit` allows: "500", "10 GiB", "30 % of them", or "500, or 30 % of
/// them where that is more".
[[nodiscard]] std::string AllowanceOf(const Limit& limit);

/// Whether Exceeds needs `total` for this `count`.
[[nodiscard]] bool NeedsTotal(const Limit& limit, uint64_t count);
/// Whether `count` is more than `limit` allows. `total`: how much of what it
/// counts the base has; used only if NeedsTotal. Pure.
[[nodiscard]] bool Exceeds(const Limit& limit, uint64_t count, uint64_t total);

/// A sum over the last `seconds`, or up to a tenth more. Each call takes
/// constant time.
class Window {
 public:
  explicit Window(uint32_t seconds)
      : step_ms_(uint64_t{seconds} * 1000 / kSteps) {}

  /// `now`: milliseconds of a monotonic clock.
  void Add(uint64_t now, uint64_t amount);
  [[nodiscard]] uint64_t SumAt(uint64_t now);

 private:
  static constexpr size_t kSteps = 10;
  /// Drops amounts that are too old.
  void AdvanceTo(uint64_t now);

  uint64_t step_ms_;
  uint64_t step_ = 0;  ///< the number of the newest step
  uint64_t sum_ = 0;
  /// By step number modulo size: the current step, and before it as many whole
  /// steps as the window has.
  std::vector<uint64_t> amounts_ = std::vector<uint64_t>(kSteps + 1);
};

}  // namespace txfs::policy

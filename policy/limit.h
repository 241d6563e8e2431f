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
  kBaseRemoved,   ///< objects that the base has, and that are removed
  kBytesWritten,  ///< bytes of content
  kInodesMade,    ///< objects that the base does not have
};
[[nodiscard]] std::string_view NameOf(Measure measure);
[[nodiscard]] std::optional<Measure> MeasureNamed(std::string_view name);
/// "base_removed, bytes_written, ..."
[[nodiscard]] std::string NamesOfMeasures();

/// A [[limit]]: how much may be done. Of `max` and `fraction` one is given at
/// least; with both, both must be exceeded.
struct Limit {
  std::string id;
  Measure of = Measure::kBaseRemoved;
  std::optional<uint64_t> max;
  std::optional<double> fraction;  ///< kBaseRemoved: of what the base has
  /// kBaseRemoved: only what one of them matches counts; empty: everything.
  std::vector<Glob> paths;
  std::vector<Glob> except;  ///< kBaseRemoved: what one matches does not count
  std::vector<std::string> patterns, except_patterns;  ///< as they were written
  std::optional<uint32_t> window;  ///< seconds; none: the transaction
  bool at_commit = false;          ///< else at the operation
  Action action = Action::kDeny;
  int error = EDQUOT;
  std::string reason, suggest;
  Place place;

  /// Whether what has `path` in the base counts.
  [[nodiscard]] bool Counts(std::string_view path) const;
};

/// What `limit` allows: "500", "10 GiB", "30 % of them", or "500, or 30 % of
/// them where that is more".
[[nodiscard]] std::string AllowanceOf(const Limit& limit);

/// Whether it takes the number of what the base has to know if `count` exceeds
/// `limit`.
[[nodiscard]] bool NeedsTotal(const Limit& limit, uint64_t count);
/// Whether `count` is more than `limit` allows. `total`: how much of what
/// counts the base has; looked at only if NeedsTotal. Pure.
[[nodiscard]] bool Exceeds(const Limit& limit, uint64_t count, uint64_t total);

/// How much was done lately: a sum over the last `seconds`, or up to a tenth
/// more. Adding and asking take the same time whatever was done.
class Window {
 public:
  explicit Window(uint32_t seconds)
      : step_ms_(uint64_t{seconds} * 1000 / kSteps) {}

  /// `now`: milliseconds of a clock that never goes back.
  void Add(uint64_t now, uint64_t amount);
  [[nodiscard]] uint64_t SumAt(uint64_t now);

 private:
  static constexpr size_t kSteps = 10;
  /// Forgets what is too old.
  void AdvanceTo(uint64_t now);

  uint64_t step_ms_;
  uint64_t step_ = 0;  ///< the number of the newest
  uint64_t sum_ = 0;
  /// By number modulo size: the step that goes on, and as many whole ones
  /// before it as make the window.
  std::vector<uint64_t> amounts_ = std::vector<uint64_t>(kSteps + 1);
};

}  // namespace txfs::policy

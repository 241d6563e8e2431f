#include "policy/limit.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace txfs::policy {
namespace {

constexpr std::array<std::string_view, 3> kMeasures{
    "base_removed", "bytes_written", "inodes_made"};

bool AnyMatches(const std::vector<Glob>& globs, std::string_view path) {
  return std::ranges::any_of(
      globs, [&](const Glob& glob) { return glob.Matches(path); });
}

/// Bytes in the largest unit of which they are whole ones.
std::string SizeInWords(uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits{" bytes", " KiB", " MiB",
                                                   " GiB", " TiB"};
  size_t unit = 0;
  for (; bytes != 0 && bytes % 1024 == 0 && unit + 1 < kUnits.size(); ++unit) {
    bytes /= 1024;
  }
  return std::to_string(bytes) + std::string(kUnits[unit]);
}

std::string PercentOf(double fraction) {
  std::array<char, 32> text{};
  const auto [end, error] =
      std::to_chars(text.data(), text.data() + text.size(), fraction * 100,
                    std::chars_format::general, 3);
  return std::string(text.data(), end) + " %";
}

}  // namespace

std::string_view NameOf(Measure measure) {
  return kMeasures[static_cast<size_t>(measure)];
}

std::optional<Measure> MeasureNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kMeasures, name);
  if (found == kMeasures.end()) return std::nullopt;
  return static_cast<Measure>(found - kMeasures.begin());
}

std::string NamesOfMeasures() {
  std::string list;
  for (const std::string_view name : kMeasures) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

bool Limit::Counts(std::string_view path) const {
  return (paths.empty() || AnyMatches(paths, path)) &&
         !AnyMatches(except, path);
}

std::string AllowanceOf(const Limit& limit) {
  const std::string part =
      limit.fraction ? PercentOf(*limit.fraction) + " of them" : "";
  if (!limit.max) return part;
  const std::string max = limit.of == Measure::kBytesWritten
                              ? SizeInWords(*limit.max)
                              : std::to_string(*limit.max);
  return part.empty() ? max : max + ", or " + part + " where that is more";
}

bool NeedsTotal(const Limit& limit, uint64_t count) {
  return limit.fraction.has_value() && count > limit.max.value_or(0);
}

bool Exceeds(const Limit& limit, uint64_t count, uint64_t total) {
  if (count <= limit.max.value_or(0)) return false;
  return !limit.fraction || static_cast<double>(count) >
                                *limit.fraction * static_cast<double>(total);
}

void Window::AdvanceTo(uint64_t now) {
  const uint64_t step = std::max(now / step_ms_, step_);
  const uint64_t passed = std::min<uint64_t>(step - step_, amounts_.size());
  for (uint64_t i = 0; i < passed; ++i) {
    uint64_t& amount = amounts_[(step - i) % amounts_.size()];
    sum_ -= amount;
    amount = 0;
  }
  step_ = step;
}

void Window::Add(uint64_t now, uint64_t amount) {
  AdvanceTo(now);
  amounts_[step_ % amounts_.size()] += amount;
  sum_ += amount;
}

uint64_t Window::SumAt(uint64_t now) {
  AdvanceTo(now);
  return sum_;
}

}  // namespace txfs::policy

#include "policy/load_limit.h"

#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

namespace txfs::policy {
namespace {

/// An hour. Longer ago is long ago for a number that ends with the mount.
constexpr int64_t kMaxWindow = 3600;

struct Unit {
  std::string_view name;
  int shift;
};
constexpr std::array<Unit, 4> kUnits{
    {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}}};

/// "10 GiB"; none for what is no size.
std::optional<uint64_t> ParseSize(std::string_view text) {
  uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc()) return std::nullopt;
  std::string_view unit(rest, static_cast<size_t>(end - rest));
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  for (const Unit& known : kUnits) {
    if (unit != known.name) continue;
    const uint64_t most = std::numeric_limits<uint64_t>::max() >> known.shift;
    if (number > most) return std::nullopt;
    return number << known.shift;
  }
  return std::nullopt;
}

Result<Measure> ReadMeasure(const Section& section) {
  const std::string name = TRY(section.Text("of", ""));
  if (name.empty()) {
    return section.Wrong("of", "is missing or empty", NamesOfMeasures());
  }
  if (const auto measure = MeasureNamed(name)) return *measure;
  return section.Wrong("of", "is " + Quoted(name), NamesOfMeasures());
}

Result<std::optional<uint64_t>> ReadMax(const Section& section,
                                        Measure measure) {
  const Node* node = section.Get("max");
  if (node == nullptr) return std::nullopt;
  const bool is_size = measure == Measure::kBytesWritten;
  const auto number = node->AsInteger();
  if (number && *number >= 0) return static_cast<uint64_t>(*number);
  const auto text = node->AsText();
  const auto size = is_size && text ? ParseSize(*text) : std::nullopt;
  if (size) return *size;
  return section.Wrong("max",
                       is_size ? "is not a number of bytes" : "is not a number",
                       is_size ? "a whole number, or one with a unit, such as "
                                 "\"10 GiB\""
                               : "a whole number");
}

Result<std::optional<double>> ReadFraction(const Section& section,
                                           Measure measure) {
  const Node* node = section.Get("fraction");
  if (node == nullptr) return std::nullopt;
  if (measure != Measure::kBaseRemoved) {
    return section.Wrong("fraction",
                         "is set for " + std::string(NameOf(measure)),
                         "fraction for base_removed only");
  }
  const auto fraction = node->AsReal();
  if (fraction && *fraction > 0 && *fraction < 1) return *fraction;
  return section.Wrong("fraction", "is out of range",
                       "a number between 0.0 and 1.0");
}

Result<bool> ReadMoment(const Section& section) {
  const std::string at = TRY(section.Text("at", "operation"));
  if (at == "operation" || at == "commit") return at == "commit";
  return section.Wrong("at", "is " + Quoted(at), "operation or commit");
}

Result<std::optional<uint32_t>> ReadWindow(const Section& section,
                                           bool at_commit) {
  const Node* node = section.Get("window");
  if (node == nullptr) return std::nullopt;
  if (at_commit) {
    return section.Wrong("window", "is given, but at is \"commit\"",
                         "no window: a commit is judged as a whole");
  }
  const auto seconds = node->AsInteger();
  if (seconds && *seconds >= 1 && *seconds <= kMaxWindow) {
    return static_cast<uint32_t>(*seconds);
  }
  return section.Wrong("window", "is not a valid number of seconds",
                       "a whole number from 1 to 3600");
}

/// As for rules, which may be defaulted: a limit says it itself.
Result<Action> ReadLimitAction(const Section& section) {
  const std::string name = TRY(section.Text("action", "deny"));
  if (name == "deny") return Action::kDeny;
  if (name == "audit") return Action::kAudit;
  return section.Wrong("action", "is " + Quoted(name), "deny or audit");
}

Result<std::vector<Glob>> ReadPatterns(const Section& section,
                                       std::vector<std::string>& patterns) {
  patterns = TRY(section.Texts("path"));
  std::vector<Glob> globs;
  for (const std::string& pattern : patterns) {
    TRY(section.CheckPlain("path", pattern, kMaxPattern));
    auto glob = Glob::Parse(pattern, false);
    if (!glob) {
      return section.Wrong("path", "has a " + glob.error().message,
                           "a pattern as in .gitignore");
    }
    globs.push_back(std::move(*glob));
  }
  return globs;
}

Status ReadPaths(const Section& section, const std::string& file,
                 Limit& limit) {
  limit.paths = TRY(ReadPatterns(section, limit.patterns));
  const Node* node = section.Get("unless");
  if (node != nullptr && !node->is_table()) {
    return section.Wrong("unless", "is not a table", "unless = { path = ... }");
  }
  if (node != nullptr) {
    const Section unless(file, "unless of [[limit]]", *node);
    TRY(unless.CheckKeys({"path"}));
    limit.except = TRY(ReadPatterns(unless, limit.except_patterns));
    if (limit.except.empty()) {
      return section.Wrong("unless", "is empty", "unless = { path = ... }");
    }
  }
  const bool has_paths = !limit.paths.empty() || node != nullptr;
  if (!has_paths || limit.of == Measure::kBaseRemoved) return {};
  return section.Wrong(section.Has("path") ? "path" : "unless",
                       "is set for " + std::string(NameOf(limit.of)),
                       "paths for base_removed only");
}

}  // namespace

Result<Limit> ReadLimit(const Section& section, const std::string& file) {
  TRY(section.CheckKeys({"id", "of", "max", "fraction", "path", "unless",
                         "window", "at", "action", "errno", "reason",
                         "suggest"}));
  Limit limit;
  limit.place = section.place();
  limit.of = TRY(ReadMeasure(section));
  limit.max = TRY(ReadMax(section, limit.of));
  limit.fraction = TRY(ReadFraction(section, limit.of));
  if (!limit.max && !limit.fraction) {
    return section.Wrong("max", "is missing", "the allowed amount");
  }
  TRY(ReadPaths(section, file, limit));
  limit.at_commit = TRY(ReadMoment(section));
  limit.window = TRY(ReadWindow(section, limit.at_commit));
  limit.action = TRY(ReadLimitAction(section));
  limit.reason = TRY(section.RequiredText("reason"));
  limit.suggest = TRY(section.RequiredText("suggest"));
  return limit;
}

}  // namespace txfs::policy

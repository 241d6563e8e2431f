#include "cli/rules/policy_cases.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <ranges>

#include "cli/output/json.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

constexpr std::array<std::string_view, 11> kKeys{
    "op",  "path",     "new_path", "layer", "type", "exe",
    "uid", "expected", "rule",     "count", "total"};

/// One line, and where it is.
class Line {
 public:
  Line(const Json& object, const std::string& file, uint32_t number)
      : object_(object), file_(file), number_(number) {}

  Result<PolicyCase> Read() const {
    TRY(CheckKeys());
    PolicyCase one{.line = number_,
                   .proposal = {},
                   .rule = {},
                   .count = TRY(Number("count")),
                   .total = TRY(Number("total"))};
    const std::string op = TRY(Text("op"));
    const auto known = policy::OpNamed(op);
    if (!known) {
      return Wrong("op is \"" + op + "\"", "an operation of txfs log");
    }
    one.proposal.op = *known;
    one.proposal.path = TRY(Text("path"));
    TRY(CheckPath("path", one.proposal.path));
    one.proposal.new_path = TRY(Text("new_path"));
    if (!one.proposal.new_path.empty()) {
      TRY(CheckPath("new_path", one.proposal.new_path));
    }
    one.proposal.exe = TRY(Text("exe"));
    one.proposal.layer = TRY(ReadLayer());
    one.proposal.type = TRY(ReadType());
    one.proposal.uid = TRY(ReadUid());
    one.rule = TRY(Text("rule"));
    one.expected = TRY(ReadExpected());
    return one;
  }

 private:
  [[nodiscard]] std::unexpected<Error> Wrong(const std::string& what,
                                             const std::string& wanted) const {
    return Fail(EINVAL, file_ + ":" + std::to_string(number_) + ": " + what +
                            "; expected " + wanted);
  }

  Status CheckKeys() const {
    if (!object_.is_object()) {
      return Wrong("it is not an object", "a JSON object per line");
    }
    for (const auto& [key, value] : object_.items()) {
      if (std::ranges::find(kKeys, key) != kKeys.end()) continue;
      return Wrong("unknown key \"" + key + "\"", "one of " + Join(kKeys));
    }
    return {};
  }

  /// No operation is about a path that is not written as txfs log does.
  Status CheckPath(const std::string& key, const std::string& path) const {
    const auto is_name = [](const auto& name) {
      const std::string_view text(name.begin(), name.end());
      return !text.empty() && text != "." && text != ".." &&
             text.find('\0') == std::string_view::npos;
    };
    if (std::ranges::all_of(path | std::views::split('/'), is_name) &&
        !path.empty()) {
      return {};
    }
    return Wrong(key + " is \"" + path + "\"",
                 "a path from the workspace's root, without \".\" and \"..\"");
  }

  /// "" when there is none.
  Result<std::string> Text(const char* key) const {
    if (!object_.contains(key)) return std::string();
    if (object_[key].is_string()) return object_[key].get<std::string>();
    return Wrong(std::string(key) + " is not text", "text in quotes");
  }

  Result<std::optional<uint64_t>> Number(const char* key) const {
    if (!object_.contains(key)) return std::nullopt;
    if (object_[key].is_number_unsigned()) return object_[key].get<uint64_t>();
    return Wrong(std::string(key) + " is not a number",
                 "a whole number from 0");
  }

  Result<policy::Layer> ReadLayer() const {
    const std::string layer = TRY(Text("layer"));
    if (layer.empty()) return policy::Layer::kBase;
    if (const auto named = policy::LayerNamed(layer)) return *named;
    return Wrong("layer is \"" + layer + "\"", "base, new or empty");
  }

  Result<std::optional<policy::Type>> ReadType() const {
    const std::string name = TRY(Text("type"));
    const auto type = policy::TypeNamed(name);
    if (type || name.empty()) return type;
    return Wrong("type is \"" + name + "\"",
                 "file, directory, symlink or other");
  }

  Result<std::optional<uint32_t>> ReadUid() const {
    const auto uid = TRY(Number("uid"));
    if (!uid) return std::nullopt;
    if (*uid <= std::numeric_limits<uint32_t>::max()) {
      return static_cast<uint32_t>(*uid);
    }
    return Wrong("uid is not a user id", "a number of 32 bits");
  }

  Result<policy::Action> ReadExpected() const {
    const std::string expected = TRY(Text("expected"));
    if (const auto action = policy::ActionNamed(expected)) return *action;
    return Wrong("expected is \"" + expected + "\"",
                 "allow, audit, hook, ask or deny");
  }

  const Json& object_;
  const std::string& file_;
  const uint32_t number_;
};

}  // namespace

Result<std::vector<PolicyCase>> ParsePolicyCases(std::string_view text,
                                                 const std::string& file) {
  std::vector<PolicyCase> cases;
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json object = Json::parse(line, nullptr, false);
    cases.push_back(TRY(Line(object, file, number).Read()));
  }
  return cases;
}

namespace {

struct Decision {
  policy::Action action = policy::Action::kAllow;
  std::string by;  ///< rule or limit; empty: none

  [[nodiscard]] std::string ToString() const {
    return std::string(policy::NameOf(action)) +
           (by.empty() ? "" : " by " + by);
  }
};

/// Of the rules, or of a limit that says more. ENODATA: it takes the total.
Result<Decision> Decide(const PolicyCase& one, const policy::Policy& rules) {
  const policy::Explanation said = policy::Explain(rules, one.proposal);
  Decision decision{said.verdict.action,
                    said.verdict.rule == nullptr ? "" : said.verdict.rule->id};
  if (!one.count) return decision;
  for (const policy::Limit* limit : said.limits) {
    if (policy::NeedsTotal(*limit, *one.count) && !one.total) {
      return Fail(ENODATA,
                  "limit " + limit->id + " needs total, which is not given");
    }
    if (limit->action > decision.action &&
        policy::Exceeds(*limit, *one.count, one.total.value_or(0))) {
      decision = {limit->action, limit->id};
    }
  }
  return decision;
}

}  // namespace

std::string FailureOf(const PolicyCase& one, const policy::Policy& rules) {
  const auto decision = Decide(one, rules);
  const bool good = decision && decision->action == one.expected &&
                    (one.rule.empty() || one.rule == decision->by);
  if (good) return "";
  return std::string(policy::NameOf(one.proposal.op)) + " " +
         one.proposal.path +
         (one.proposal.new_path.empty() ? "" : " " + one.proposal.new_path) +
         ": expected " + Decision{one.expected, one.rule}.ToString() +
         (decision ? ", got " + decision->ToString()
                   : "; " + decision.error().message);
}

}  // namespace txfs::cli

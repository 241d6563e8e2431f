// A policy file: it is one, or the error says where it is not.

#include "policy/policy.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <tuple>
#include <utility>

#include "policy/explain.h"
#include "policy/lint.h"
#include "policy/load.h"
#include "tests/fuzz/fuzz.h"

namespace txfs::policy {
namespace {

using fuzz::Demand;

void Judge(const Policy& policy, std::string_view path) {
  for (size_t op = 0; op < kOps; ++op) {
    const Event event{.op = static_cast<Op>(op),
                      .effect = MainEffect(static_cast<Op>(op)),
                      .path = path,
                      .exe = "/bin/sh"};
    const Verdict verdict = Evaluate(policy, event);
    const auto matching = policy.Matching(event);
    Demand((verdict.rule == nullptr) == matching.empty(),
           "a rule decides when one matches");
    Demand(matching.empty() || policy.IsAbout(path),
           "what a rule matches, it is about");
  }
  const auto counts = [&](const Limit& limit) {
    return limit.of == Measure::kBaseRemoved && limit.Counts(path);
  };
  const Proposal removal{.op = Op::kUnlink, .path = std::string(path)};
  const auto expected = std::ranges::count_if(policy.limits(), counts);
  Demand(std::ssize(Explain(policy, removal).limits) == expected,
         "the limits of what is removed are named");
}

void Run(std::string_view text) {
  auto loaded = Load(text, "f.toml");
  if (!loaded) {
    const Error& error = loaded.error();
    Demand(error.code == EINVAL, "the error is EINVAL");
    Demand(error.message.starts_with("f.toml:"), "the error has a line");
    return;
  }
  for (const Rule& rule : loaded->rules) {
    Demand(!rule.id.empty() && !rule.reason.empty() && !rule.suggest.empty(),
           "a rule has what it needs");
    Demand(rule.place.line != 0, "a rule has a line");
  }
  for (const Limit& limit : loaded->limits) {
    Demand(limit.place.line != 0, "a limit has a line");
    Demand(!limit.id.empty() && (limit.max || limit.fraction),
           "a limit has what it needs");
    Demand(!AllowanceOf(limit).empty(), "a limit allows something");
    Demand(!Exceeds(limit, 0, 0), "nothing exceeds no limit");
    std::ignore = limit.Counts("src/.git/hooks/x.pem");
  }
  const Policy policy(std::move(loaded->rules), loaded->hash,
                      std::move(loaded->limits), std::move(loaded->settings));
  for (const Warning& warning :
       Lint(policy.rules(), policy.limits(), policy.exec_rules())) {
    Demand(warning.place.line != 0, "a warning has a line");
  }
  Judge(policy, "a");
  Judge(policy, "src/.git/hooks/x.pem");
}

}  // namespace
}  // namespace txfs::policy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::policy::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}

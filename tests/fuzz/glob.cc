// A pattern and a path: the matcher agrees with the definition. The input is
// "PATTERN NUL PATH", or with "\1" before that, where case does not count.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "policy/ascii.h"
#include "policy/policy.h"
#include "tests/fuzz/fuzz.h"
#include "tests/policy/reference.h"

namespace txfs::policy {
namespace {

using fuzz::Demand;

/// The kernel asks for nothing else.
bool IsPath(std::string_view path) {
  return !path.empty() && !path.starts_with('/') && !path.ends_with('/') &&
         !path.contains("//") && !path.contains('\0');
}

void CheckAbove(const Glob& glob, std::string_view path) {
  Demand(glob.MayMatchBelow(""), "what matches is below the root");
  for (size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '/') continue;
    Demand(glob.MayMatchBelow(path.substr(0, i)),
           "what matches is below what is above it");
  }
}

void CheckNeedles(const Glob& glob, std::string_view path) {
  const std::string framed = "/" + Lowered(path) + "/";
  for (const std::string& needle : glob.Needles()) {
    Demand(framed.contains(needle), "what matches has all needles");
  }
}

void Run(std::string_view input) {
  const bool nocase = input.starts_with('\1');
  if (nocase) input.remove_prefix(1);
  const size_t end = input.find('\0');
  if (end == input.npos) return;
  const std::string_view pattern = input.substr(0, end);
  const std::string_view path = input.substr(end + 1);
  auto glob = Glob::Parse(pattern, nocase);
  if (!glob || !IsPath(path)) return;
  const bool matches = glob->Matches(path);
  Demand(matches == testing::ReferenceMatches(pattern, nocase, path),
         "the matcher agrees with the definition");
  if (matches) {
    CheckAbove(*glob, path);
    CheckNeedles(*glob, path);
  }
  Rule rule;
  rule.when.paths.push_back(std::move(*glob));
  const Policy policy({rule});
  Demand(policy.IsAbout(path) == matches, "the index finds what matches");
}

}  // namespace
}  // namespace txfs::policy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::policy::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}

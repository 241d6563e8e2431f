// What a host's process sends to its hook: after a line with the host's name, a
// JSON object. It is read, and every answer is what the host can parse.

#include <algorithm>
#include <string>

#include "cli/hook/hosts.h"
#include "cli/output/json.h"
#include "tests/fuzz/fuzz.h"

namespace txfs::cli {
namespace {

using fuzz::Demand;

bool IsToolOf(const HookHost& host, const std::string& tool) {
  return std::ranges::any_of(
      host.tools, [&](const HostTool& known) { return known.name == tool; });
}

void CheckOutput(const HookOutput& output) {
  Demand(output.out.empty() || Json::accept(output.out), "an answer is JSON");
  Demand(output.code == 0 || output.code == 2, "an exit code means something");
}

void Run(std::string_view text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const HookHost* host = FindHookHost(text.substr(0, end));
  if (host == nullptr) return;
  const std::string sent(text.substr(std::min(end + 1, text.size())));
  const HookCall call = host->read(ParseBounded(sent));
  if (IsToolOf(*host, call.tool)) {
    Demand(call.is_judged() || !call.problem.empty(),
           "a call of a known tool is judged, or it is said why not");
  }
  for (const Decision decision :
       {Decision::kAllow, Decision::kSilent, Decision::kAsk, Decision::kDeny}) {
    // A reason has words of the command.
    const std::string reason = decision > Decision::kSilent ? sent : "";
    CheckOutput(host->write(call, {.decision = decision, .reason = reason}));
  }
  CheckOutput(host->refuse(sent));
}

}  // namespace
}  // namespace txfs::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::cli::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}

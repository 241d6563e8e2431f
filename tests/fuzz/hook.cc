// A line that a hook program answers with: it is an answer, or the error says
// what came instead.

#include <string>

#include "cli/daemon/hook_process.h"
#include "cli/output/json.h"
#include "cli/output/text.h"
#include "tests/fuzz/fuzz.h"

namespace txfs::cli {
namespace {

using fuzz::Demand;
using Verdict = HookProcess::Verdict;

/// Of the question that is answered; seeds have it, too.
constexpr uint64_t kId = 7;
/// Of a sentence in the log.
constexpr size_t kMaxError = 1000;

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kAllow:
      return "allow";
    case Verdict::kDeny:
      return "deny";
    case Verdict::kAsk:
      return "ask";
  }
  return "";
}

void CheckAnswer(const HookProcess::Reply& reply) {
  const Json json = {{"id", kId},
                     {"verdict", NameOf(reply.verdict)},
                     {"reason", EncodeBytes(reply.reason)}};
  const auto again = HookProcess::ParseReply(Dump(json), kId);
  Demand(
      again && again->verdict == reply.verdict && again->reason == reply.reason,
      "what is sent is what is read");
  Demand(!HookProcess::ParseReply(Dump(json), kId + 1),
         "an answer is to one question");
}

void CheckError(const std::string& message) {
  Demand(EscapeControls(message) == message, "an error is plain text");
  Demand(message.size() <= kMaxError, "an error is short");
}

void Run(std::string_view line) {
  const auto reply = HookProcess::ParseReply(line, kId);
  if (reply) {
    CheckAnswer(*reply);
  } else {
    CheckError(reply.error().message);
  }
}

}  // namespace
}  // namespace txfs::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::cli::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}

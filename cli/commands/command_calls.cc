#include <functional>
#include <set>
#include <vector>

#include "cli/calls/call_format.h"
#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

std::string CallText(uint64_t number) {
  return "call " + std::to_string(number);
}

std::string RevertText(const RevertReport& report) {
  if (report.as == 0) return CallText(report.number) + " changed nothing\n";
  return "reverted " + CallText(report.number) + ": " +
         Count(report.changes, "change") + "; `txfs rollback --call " +
         std::to_string(report.as) + "` brings " +
         (report.changes == 1 ? "it" : "them") + " back\n";
}

Document RevertDocument(const RevertReport& report) {
  Document document;
  document["number"] = report.number;
  document["reverted"] = report.as != 0;
  document["as"] = nullptr;
  if (report.as != 0) document["as"] = report.as;
  document["changes"] = report.changes;
  document["built_on"] = Document::array();
  for (const BuiltOn& built_on : report.built_on) {
    Document& item = document["built_on"].emplace_back();
    PutPath(item, "path", built_on.path);
    item["reason"] = built_on.reason;
    item["calls"] = built_on.calls;
  }
  return document;
}

std::string BuiltOnText(const BuiltOn& built_on) {
  return PathText(built_on.path) + ": " + built_on.reason +
         (built_on.calls.empty() ? ", outside of calls" : ", by call ") +
         Join(built_on.calls,
              [](uint64_t call) { return std::to_string(call); });
}

/// The calls that are built on it, the newest first; none if changes outside of
/// calls are, too.
std::vector<uint64_t> LaterCalls(const RevertReport& report) {
  std::set<uint64_t, std::greater<>> calls;
  for (const BuiltOn& built_on : report.built_on) {
    if (built_on.calls.empty()) return {};
    calls.insert(built_on.calls.begin(), built_on.calls.end());
  }
  return {calls.begin(), calls.end()};
}

/// "revert calls 5, 2 first, in this order, or "; "": that would not help.
std::string RevertFirst(const std::vector<uint64_t>& calls) {
  if (calls.empty()) return "";
  const std::string numbers =
      Join(calls, [](uint64_t call) { return std::to_string(call); });
  if (calls.size() == 1) return "revert call " + numbers + " first, or ";
  return "revert calls " + numbers + " first, in this order, or ";
}

Error RevertRefused(const RevertReport& report) {
  const std::string number = std::to_string(report.number);
  return {.code = 0,
          .message = "nothing was reverted: later changes at " +
                     Count(report.built_on.size(), "path") +
                     " are built on call " + number,
          .hint = RevertFirst(LaterCalls(report)) +
                  "go back with `txfs rollback --call " + number +
                  "`, which also drops later changes",
          .kind = ErrorKind::kConflict};
}

}  // namespace

Result<int> RunMarkCall(const Context& context, const CallMark& mark,
                        bool json) {
  if (mark.call.empty()) {
    return Fail(ErrorKind::kUsage, 0, "the id of the call is empty",
                "name it with --call ID");
  }
  Client client = TRY(Connect(context));
  const uint64_t number = TRY(client.MarkCall(mark));
  Document document;
  document["number"] = nullptr;
  if (number != 0) document["number"] = number;
  document["end"] = mark.end;
  std::string text = CallText(number) + (mark.end ? " has ended" : "") + "\n";
  if (number == 0) text = "no such call runs\n";
  Output output;
  output.Write(json ? Dump(document, 2) + "\n" : text);
  TRY(output.Finish());
  return 0;
}

Result<int> RunCalls(const Context& context, bool json) {
  Client client = TRY(Connect(context));
  const std::vector<Call> calls = TRY(client.Calls());
  Output output;
  const CallTable table(calls);
  for (const Call& call : calls) {
    output.Write(json ? Dump(CallDocument(call)) + "\n" : table.Line(call));
  }
  if (calls.empty() && !json) Say("the transaction has no calls");
  TRY(output.Finish());
  return 0;
}

Result<int> RunRevert(const Context& context, const std::string& call,
                      bool json) {
  const Place place = TRY(Locate(context));
  Client client = TRY(ConnectFlushed(place, WhatWaits::kDenied));
  const RevertReport report = TRY(client.RevertCall(call));
  LookUpMoved(place, client);
  const bool refused = !report.built_on.empty();
  Output output;
  if (json) {
    output.Write(Dump(RevertDocument(report), 2) + "\n");
  } else if (!refused) {
    output.Write(RevertText(report));
  }
  if (!json) {
    for (const BuiltOn& built_on : report.built_on) Say(BuiltOnText(built_on));
  }
  TRY(output.Finish());
  if (!refused) return 0;
  return std::unexpected(RevertRefused(report));
}

}  // namespace txfs::cli

#include "cli/calls/call_format.h"

#include <algorithm>
#include <set>

namespace txfs::cli {
namespace {

constexpr size_t kShownCommand = 60;
constexpr size_t kShownId = 24;

/// The beginning of the first line of `text`.
std::string Beginning(const std::string& text, size_t most) {
  const size_t line = std::min(text.find('\n'), text.size());
  size_t end = std::min(line, most);
  // Not in the middle of a character.
  while (end > 0 && end < line &&
         (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) {
    --end;
  }
  return EscapeControls(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

std::string PutWord(const std::string& text) {
  return text.empty() ? "" : "  " + Beginning(text, kShownId);
}

/// `ids`: what stands behind the host.
std::string MarkText(const CallMark& mark, const std::string& ids = "") {
  std::string text = PutWord(mark.host) + ids + PutWord(mark.tool);
  if (!mark.command.empty()) {
    text += "  " + Beginning(mark.command, kShownCommand);
  }
  return text;
}

/// How many bytes tell `ids` apart, at least 4. Some hosts' ids begin with the
/// time.
size_t DistinctLength(const std::set<std::string>& ids) {
  size_t length = 4;
  const std::string* previous = nullptr;
  for (const std::string& id : ids) {
    if (previous != nullptr) {
      const auto differ = std::ranges::mismatch(*previous, id).in2;
      const auto same = static_cast<size_t>(differ - id.begin());
      length = std::max(length, same + 1);
    }
    previous = &id;
  }
  return length;
}

void PutId(Document& document, const char* key, const std::string& id) {
  document[key] = nullptr;
  if (!id.empty()) document[key] = ToUtf8(id);
}

}  // namespace

CallTable::CallTable(const std::vector<Call>& calls) {
  std::set<std::string> sessions;
  std::set<std::string> agents;
  for (const Call& call : calls) {
    if (!call.mark.session.empty()) sessions.insert(call.mark.session);
    if (!call.mark.agent.empty()) agents.insert(call.mark.agent);
  }
  if (sessions.size() > 1) session_ = DistinctLength(sessions);
  if (!agents.empty()) agent_ = DistinctLength(agents);
}

std::string CallTable::Line(const Call& call) const {
  std::string number = std::to_string(call.number);
  if (!call.overlaps.empty()) number += "+";
  number.insert(0, number.size() < 6 ? 6 - number.size() : 0, ' ');
  const std::string changes =
      call.gone ? "gone" : Count(call.changes, "change");
  std::string ids;
  if (session_ != 0 && !call.mark.session.empty()) {
    ids += "  session " + EscapeControls(call.mark.session.substr(0, session_));
  }
  if (agent_ != 0 && !call.mark.agent.empty()) {
    ids += "  agent " + EscapeControls(call.mark.agent.substr(0, agent_));
  }
  return number + "  " + LocalTime(call.began, 0) + MarkText(call.mark, ids) +
         "  " + changes + "\n";
}

Document CallDocument(const Call& call) {
  const CallMark& mark = call.mark;
  Document document;
  document["number"] = call.number;
  document["savepoint"] = NameOf({.number = call.number});
  PutId(document, "host", mark.host);
  PutId(document, "session", mark.session);
  PutId(document, "turn", mark.turn);
  PutId(document, "call", mark.call);
  PutId(document, "agent", mark.agent);
  PutId(document, "tool", mark.tool);
  PutPath(document, "command", mark.command);
  document["began"] = UtcTime(call.began);
  document["ended"] = nullptr;
  if (call.end != kNoLsn) document["ended"] = UtcTime(call.ended);
  document["gone"] = call.gone;
  document["operations"] = call.operations;
  document["changes"] = call.changes;
  document["overlaps"] = call.overlaps;
  return document;
}

std::string CallHeading(uint64_t number, const CallMark* mark) {
  if (number == 0) return "outside of calls\n";
  return "call " + std::to_string(number) +
         (mark == nullptr ? "" : MarkText(*mark)) + "\n";
}

}  // namespace txfs::cli

#include "cli/calls/call_format.h"

#include <algorithm>

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

std::string MarkText(const CallMark& mark) {
  std::string text = PutWord(mark.host) + PutWord(mark.tool);
  if (!mark.command.empty()) {
    text += "  " + Beginning(mark.command, kShownCommand);
  }
  return text;
}

void PutId(Document& document, const char* key, const std::string& id) {
  document[key] = nullptr;
  if (!id.empty()) document[key] = ToUtf8(id);
}

}  // namespace

std::string CallLine(const Call& call) {
  std::string number = std::to_string(call.number);
  if (!call.overlaps.empty()) number += "+";
  number.insert(0, number.size() < 6 ? 6 - number.size() : 0, ' ');
  const std::string changes =
      call.gone ? "gone" : Count(call.changes, "change");
  return number + "  " + LocalTime(call.began, 0) + MarkText(call.mark) + "  " +
         changes + "\n";
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

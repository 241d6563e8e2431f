#include "cli/output/log_format.h"

#include "cli/output/errors.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

std::string RepeatText(const LogEntry& entry) {
  if (entry.count < 2) return "";
  return ", " + Count(entry.count, "time") + " since " +
         LocalTime(entry.first, 0);
}

void PutIfAny(Document& document, const char* key, const std::string& text) {
  document[key] = nullptr;
  if (!text.empty()) document[key] = ToUtf8(text);
}

std::string UidText(uint32_t uid) {
  return uid == kNoUid ? "?" : std::to_string(uid);
}

}  // namespace

std::string LogLine(const LogEntry& entry) {
  const Change& change = entry.change;
  const std::string exe = change.exe.substr(change.exe.rfind('/') + 1);
  std::string line =
      LocalTime(change.time, 6) + "  " + std::to_string(change.pid) + " " +
      (exe.empty() ? "?" : EscapeControls(exe)) + "  uid " +
      UidText(change.uid) + "  " + std::string(OpName(change.op)) + "  " +
      PathText(change.path);
  if (!change.new_path.empty() && change.op != Op::kSavepoint) {
    line += " -> " + EscapeControls(change.new_path);
  }
  line += "  " + std::string(ErrnoName(change.result));
  if (!change.rule.empty()) line += " by " + EscapeControls(change.rule);
  line += RepeatText(entry);
  if (!entry.run.empty()) line += "  " + EscapeControls(entry.run);
  return line + "\n";
}

std::string DenialText(const LogEntry& entry) {
  const Change& change = entry.change;
  std::string text = LogLine(entry);
  if (!change.because.empty()) {
    text += "    because of: " + EscapeControls(change.because) + "\n";
  }
  if (!change.reason.empty()) {
    text += "    reason: " + EscapeControls(change.reason) + "\n";
  }
  if (!change.suggest.empty()) {
    text += "    instead: " + EscapeControls(change.suggest) + "\n";
  }
  return text;
}

Document LogDocument(const LogEntry& entry) {
  const Change& change = entry.change;
  Document document;
  document["lsn"] = Raw(entry.lsn);
  document["time"] = UtcTime(change.time);
  document["pid"] = change.pid;
  PutPath(document, "exe", change.exe);
  document["uid"] = nullptr;
  if (change.uid != kNoUid) document["uid"] = change.uid;
  document["op"] = OpName(change.op);
  PutPath(document, "path", change.path);
  document["new_path"] = nullptr;
  // That of a savepoint is the mark of a call.
  const bool has_path = !change.new_path.empty() && change.op != Op::kSavepoint;
  if (has_path) PutPath(document, "new_path", change.new_path);
  document["offset"] = change.offset;
  document["length"] = change.length;
  document["result"] = ErrnoName(change.result);
  PutIfAny(document, "rule", change.rule);
  document["because"] = nullptr;
  if (!change.because.empty()) PutPath(document, "because", change.because);
  PutIfAny(document, "reason", change.reason);
  PutIfAny(document, "suggest", change.suggest);
  PutIfAny(document, "run", entry.run);
  document["call"] = nullptr;
  if (entry.call != 0) document["call"] = entry.call;
  document["count"] = entry.count;
  document["first"] = UtcTime(entry.count > 1 ? entry.first : change.time);
  return document;
}

void SayDropped(uint64_t dropped) {
  if (dropped == 0) return;
  Say("note: " + Count(dropped, "older refused operation") +
      (dropped == 1 ? " is" : " are") +
      " not listed, only counted by rule (`txfs status`)");
}

}  // namespace txfs::cli

#include "cli/run/report.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <ranges>
#include <string_view>

#include "cli/output/held_text.h"
#include "cli/output/json.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

std::string_view KindName(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kAdded:
      return "added";
    case ChangeKind::kDeleted:
      return "deleted";
    case ChangeKind::kRenamed:
      return "renamed";
    case ChangeKind::kTypeChanged:
      return "type changed";
    case ChangeKind::kModified:
      break;
  }
  return "modified";
}

Document TextList(const std::vector<std::string>& list) {
  Document array = Document::array();
  for (const std::string& text : list) array.push_back(ToUtf8(text));
  return array;
}

Document ChangeList(const std::vector<NetChange>& changes) {
  Document array = Document::array();
  for (const NetChange& change : changes) {
    Document object;
    object["kind"] = KindName(change.kind);
    PutPath(object, "path", change.path);
    if (!change.old_path.empty()) PutPath(object, "old_path", change.old_path);
    array.push_back(std::move(object));
  }
  return array;
}

Document SettingList(const std::vector<TakenSetting>& settings) {
  Document array = Document::array();
  for (const TakenSetting& setting : settings) {
    Document object;
    object["key"] = setting.key;
    object["from"] = ToUtf8(setting.from);
    array.push_back(std::move(object));
  }
  return array;
}

/// The limits that are set.
Document LimitObject(const RunReport& report) {
  const std::pair<const char*, uint64_t> all[] = {
      {"timeout_milliseconds", report.timeout_ms},
      {"memory", report.limits.memory},
      {"cpu_milliseconds", report.limits.cpu_ms},
      {"pids", report.limits.pids},
      {"disk", report.limits.disk},
      {"files", report.limits.files}};
  Document object = Document::object();
  for (const auto& [name, value] : all) {
    if (value != 0) object[name] = value;
  }
  return object;
}

Document JudgementObject(const RuleVerdict& verdict) {
  Document object;
  object["verdict"] = policy::NameOf(verdict.action);
  object["class"] = policy::NameOf(verdict.consequence);
  object["rule"] = nullptr;
  if (!verdict.rule.empty()) object["rule"] = ToUtf8(verdict.rule);
  object["read_only"] = verdict.reads_only;
  return object;
}

Document ToDocument(const RunReport& report) {
  Document document;
  document["command"] = TextList(report.command);
  document["judgement"] = nullptr;
  if (report.judgement) {
    document["judgement"] = JudgementObject(*report.judgement);
  }
  document["direct"] = report.direct;
  PutPath(document, "workspace", report.workspace);
  document["transaction"] = report.transaction;
  document["name"] = nullptr;
  if (!report.name.empty()) document["name"] = report.name;
  document["outcome"] = report.outcome;
  document["why"] = nullptr;
  if (!report.why.empty()) document["why"] = ToUtf8(report.why);
  document["exit_code"] = report.code;
  document["changes"] = ChangeList(report.changes);
  document["committed"] = report.committed;
  Document conflicts = Document::array();
  for (const Conflict& conflict : report.conflicts) {
    conflicts.push_back(ToUtf8(conflict.path));
  }
  document["conflicts"] = std::move(conflicts);
  document["held"] = HeldDocuments(report.held);
  document["held_more"] = HeldRestDocuments(report.held);
  Document denied = Document::object();
  for (const RuleCount& rule : report.denied) denied[rule.rule] = rule.count;
  document["denied"] = std::move(denied);
  Document refused = Document::array();
  for (const auto& [name, count] : report.refused) {
    refused.push_back({{"name", name}, {"count", count}});
  }
  document["network_refused"] = std::move(refused);
  document["environment_dropped"] = TextList(report.dropped);
  document["home_kept"] = TextList(report.home_kept);
  document["home_not_kept"] = TextList(report.home_not_kept);
  document["writable_outside"] = TextList(report.writable_outside);
  document["configuration"] = SettingList(report.configuration);
  document["limits"] = LimitObject(report);
  document["limits_by"] = nullptr;
  if (!report.limits_by.empty()) document["limits_by"] = report.limits_by;
  document["peak_memory"] = report.used.memory;
  document["cpu_milliseconds"] = report.used.cpu_ms;
  Document phases = Document::object();
  for (const auto& [name, ms] : report.phases) phases[name] = ms;
  document["milliseconds"] = std::move(phases);
  document["total_milliseconds"] = report.total_ms;
  return document;
}

}  // namespace

std::string OutcomeLine(const RunReport& report) {
  const std::string time = Seconds(report.total_ms);
  if (report.outcome == "committed") {
    return "committed " + Count(report.committed, "change") + " in " + time;
  }
  if (report.outcome == "unchanged") return "nothing changed in " + time;
  std::string line = report.outcome;
  if (report.outcome == "kept") {
    line += " " + Count(report.changes.size(), "change");
  }
  const std::string why = report.why.empty() ? "" : ": " + report.why;
  // "review after 0.5 s" is something else.
  if (report.held.stops()) return line + " after " + time + why;
  return line + why + " after " + time;
}

std::string RefusedText(const std::map<std::string, uint64_t>& refused) {
  constexpr size_t kShown = 10;
  const std::string names =
      Join(refused | std::views::take(kShown), [](const auto& entry) {
        const std::string name = EscapeControls(entry.first);
        return entry.second == 1
                   ? name
                   : name + " (" + std::to_string(entry.second) + " times)";
      });
  return names + (refused.size() > kShown ? ", ..." : "");
}

Result<UniqueFd> OpenReport(const std::string& path) {
  UniqueFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd.valid()) {
    return Fail(errno, "cannot write the report " + path,
                "name a file in a directory that you can write to");
  }
  return fd;
}

Status WriteReport(const RunReport& report, int fd, const std::string& path) {
  const std::string text = Dump(ToDocument(report), 2) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(fd, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "cannot write the report " + path);
    rest.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace txfs::cli

#include "cli/output/summary_format.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>

#include "cli/output/errors.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

Document RunDocument(const RunRecord& run) {
  const bool has_ended = run.outcome != RunOutcome::kRunning &&
                         run.outcome != RunOutcome::kInterrupted;
  Document document;
  document["id"] = ToUtf8(run.id);
  document["command"] = Document::array();
  for (const std::string& word : run.command) {
    document["command"].push_back(ToUtf8(word));
  }
  document["truncated"] = run.is_cut;
  document["profile"] = nullptr;
  if (!run.profile.empty()) document["profile"] = ToUtf8(run.profile);
  document["outcome"] = OutcomeName(run.outcome);
  document["why"] = nullptr;
  if (!run.why.empty()) document["why"] = ToUtf8(run.why);
  document["exit_code"] = nullptr;
  if (has_ended) document["exit_code"] = run.code;
  document["began"] = UtcTime(run.begin);
  document["milliseconds"] = nullptr;
  if (has_ended) document["milliseconds"] = run.milliseconds;
  return document;
}

Document RunDocuments(const std::vector<RunRecord>& runs) {
  Document documents = Document::array();
  for (const RunRecord& run : runs) documents.push_back(RunDocument(run));
  return documents;
}

}  // namespace

Document SummaryDocument(const TransactionSummary& transaction) {
  const auto id_or_null = [](const std::string& id) -> Document {
    if (id.empty()) return nullptr;
    return id;
  };
  Document item;
  item["id"] = transaction.id;
  item["name"] = ToUtf8(transaction.name);
  item["kind"] = KindName(transaction.kind);
  item["of"] = id_or_null(transaction.of);
  item["state"] = StateName(transaction.state);
  item["undoable"] = transaction.undoable;
  item["undone_by"] = id_or_null(transaction.undone_by);
  item["created"] = UtcTime(transaction.created);
  item["ended"] = nullptr;
  if (IsEnded(transaction)) item["ended"] = UtcTime(transaction.ended);
  item["author"] = nullptr;
  if (!transaction.author.empty()) item["author"] = ToUtf8(transaction.author);
  item["message"] = ToUtf8(transaction.message);
  item["changes"] = transaction.changes;
  item["denied"] = DeniedDocument(transaction.denied);
  item["runs"] = RunDocuments(transaction.runs);
  return item;
}

Document SavepointDocument(const Savepoint& savepoint) {
  Document document;
  document["name"] = ToUtf8(savepoint.name);
  document["lsn"] = Raw(savepoint.lsn);
  document["time"] = UtcTime(savepoint.time);
  return document;
}

std::string RunOutcomeText(const RunRecord& run) {
  std::string text(OutcomeName(run.outcome));
  if (!run.why.empty()) text += ": " + EscapeControls(run.why);
  return text;
}

std::string RunCommandText(const RunRecord& run) {
  std::string text;
  for (const std::string& word : run.command) {
    text += (text.empty() ? "" : " ") + QuoteShell(word);
  }
  return EscapeControls(text) + (run.is_cut ? " ..." : "");
}

std::string Seconds(uint64_t ms) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1f s",
                static_cast<double>(ms) / 1000);
  return text.data();
}

uint64_t DeniedCount(const std::vector<RuleCount>& denied) {
  uint64_t count = 0;
  for (const RuleCount& rule : denied) count += rule.count;
  return count;
}

std::string DeniedText(std::vector<RuleCount> denied) {
  constexpr size_t kShownRules = 5;
  const std::string count = Count(DeniedCount(denied), "operation");
  std::ranges::stable_sort(denied, std::ranges::greater(), &RuleCount::count);
  const size_t more = denied.size() - std::min(denied.size(), kShownRules);
  denied.resize(denied.size() - more);
  const bool alone = denied.size() == 1;
  std::string rules = Join(denied, [&](const RuleCount& rule) {
    return EscapeControls(rule.rule) +
           (alone ? "" : " (" + std::to_string(rule.count) + ")");
  });
  if (more != 0) rules += " and " + Count(more, "other rule");
  return count + " by " + rules;
}

Document DeniedDocument(const std::vector<RuleCount>& denied) {
  Document documents = Document::array();
  for (const RuleCount& rule : denied) {
    Document document;
    document["rule"] = ToUtf8(rule.rule);
    document["count"] = rule.count;
    documents.push_back(std::move(document));
  }
  return documents;
}

std::string UndoMark(const TransactionSummary& transaction) {
  if (transaction.undoable) return "undoable";
  return transaction.undone_by.empty() ? "" : "undone";
}

}  // namespace txfs::cli

#include "journal/denial_table.h"

#include <algorithm>

#include "journal/db.h"

namespace txfs {
namespace {

void Cut(std::string& text, size_t length) {
  if (text.size() > length) text.resize(length);
}

/// What the same denials have in common, and no others.
std::string ContentOf(const Change& denial) {
  std::string content;
  content.reserve(64 + denial.exe.size() + denial.path.size() +
                  denial.new_path.size() + denial.rule.size());
  const auto put = [&](auto number) {
    content.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  put(denial.op);
  put(denial.result);
  put(denial.uid);
  put(denial.policy);
  for (const std::string* text : {&denial.exe, &denial.path, &denial.new_path,
                                  &denial.rule, &denial.because}) {
    put(text->size());
    content += *text;
  }
  return content;
}

}  // namespace

uint64_t Denials::Dropped() const {
  uint64_t dropped = 0;
  for (const DeniedRule& rule : rules) dropped += rule.count;
  for (const LogEntry& entry : entries) dropped -= entry.count;
  return dropped;
}

std::vector<RuleCount> Denials::CountByRule() const {
  std::map<std::string, uint64_t> counts;
  for (const DeniedRule& rule : rules) counts[rule.rule] += rule.count;
  std::vector<RuleCount> list;
  for (const auto& [rule, count] : counts) list.push_back({rule, count});
  return list;
}

void CutDenial(Change& denial) {
  for (std::string* text : {&denial.exe, &denial.path, &denial.new_path,
                            &denial.reason, &denial.suggest, &denial.because}) {
    Cut(*text, kMaxDenialText);
  }
  Cut(denial.rule, kMaxDenialRule);
}

void DenialTable::Load(LogEntry entry) {
  by_content_[ContentOf(entry.change)] = entry.lsn;
  Insert(std::move(entry));
}

void DenialTable::Load(DeniedRule rule) {
  const RuleKey key{rule.policy, rule.rule};
  rules_[key] = std::move(rule);
}

void DenialTable::Insert(LogEntry entry) {
  Evidence& evidence = evidence_[KeyOf(entry)];
  const auto first = entries_.find(evidence.first);
  if (first == entries_.end() || entry.first < first->second.first) {
    evidence.first = entry.lsn;
  }
  evidence.lsns.insert(entry.lsn);
  entries_[entry.lsn] = std::move(entry);
}

void DenialTable::Drop() {
  const auto most = std::ranges::max_element(
      evidence_, {}, [](const auto& rule) { return rule.second.lsns.size(); });
  Evidence& evidence = most->second;
  auto victim = evidence.lsns.begin();
  if (*victim == evidence.first && evidence.lsns.size() > 1) ++victim;
  // More rules than entries: of one that has only its last denial, that goes.
  const Lsn lsn = *victim;
  by_content_.erase(ContentOf(entries_.at(lsn).change));
  evidence.lsns.erase(victim);
  if (evidence.lsns.empty()) evidence_.erase(most);
  entries_.erase(lsn);
}

void DenialTable::Count(const Change& denial) {
  DeniedRule& rule = rules_[{denial.policy, denial.rule}];
  if (rule.count++ == 0) {
    rule.policy = denial.policy;
    rule.rule = denial.rule;
    rule.reason = denial.reason;
    rule.suggest = denial.suggest;
    rule.first = denial.time;
  }
  rule.last = denial.time;
}

void DenialTable::Add(Lsn lsn, Change denial) {
  CutDenial(denial);
  Count(denial);
  denial.reason.clear();
  denial.suggest.clear();
  LogEntry entry{.lsn = lsn, .change = std::move(denial)};
  entry.first = entry.change.time;
  const auto [same, fresh] =
      by_content_.try_emplace(ContentOf(entry.change), lsn);
  if (!fresh) {
    const auto before = entries_.extract(same->second);
    entry.count += before.mapped().count;
    entry.first = before.mapped().first;
    Evidence& evidence = evidence_[KeyOf(entry)];
    evidence.lsns.erase(same->second);
    if (evidence.first == same->second) evidence.first = lsn;
    same->second = lsn;
  }
  Insert(std::move(entry));
  if (entries_.size() > kMaxEntries) Drop();
}

void DenialTable::SaveTo(Tables& tables, const DenialTable& before) const {
  for (const auto& [lsn, entry] : before.entries_) {
    if (!entries_.contains(lsn)) tables.EraseDenial(lsn);
  }
  // One that is repeated gets another LSN.
  for (const auto& [lsn, entry] : entries_) {
    if (!before.entries_.contains(lsn)) tables.PutDenial(entry);
  }
  for (const auto& [key, rule] : rules_) {
    const auto old = before.rules_.find(key);
    if (old == before.rules_.end() || old->second != rule) tables.PutRule(rule);
  }
}

Denials DenialTable::Report() const {
  Denials report;
  for (const auto& [key, rule] : rules_) report.rules.push_back(rule);
  for (const auto& [lsn, entry] : entries_) {
    report.entries.push_back(entry);
    Change& change = report.entries.back().change;
    const auto rule = rules_.find({change.policy, change.rule});
    if (rule == rules_.end()) continue;
    change.reason = rule->second.reason;
    change.suggest = rule->second.suggest;
  }
  return report;
}

}  // namespace txfs

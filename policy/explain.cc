#include "policy/explain.h"

#include <algorithm>

namespace txfs::policy {
namespace {

bool HasTwoEnds(const Question& question) {
  return !question.new_path.empty() &&
         (question.op == Op::kRename || question.op == Op::kExchange ||
          question.op == Op::kLink);
}

}  // namespace

std::vector<Event> EventsOf(const Question& question) {
  const auto event = [&](Effect effect, const std::string& path) {
    return Event{
        .op = question.op,
        .effect = effect,
        .path = path,
        .layer = effect == Effect::kMake ? Layer::kNew : question.layer,
        .type =
            question.type.value_or(TypeOf(question.op).value_or(Type::kFile)),
        .exe = question.exe,
        .uid = question.uid};
  };
  if (!HasTwoEnds(question)) {
    return {event(MainEffect(question.op), question.path)};
  }
  if (question.op == Op::kLink) {
    return {event(Effect::kAttributes, question.path),
            event(Effect::kMake, question.new_path)};
  }
  std::vector<Event> events{event(Effect::kRemove, question.path),
                            event(Effect::kMake, question.new_path),
                            event(Effect::kRemove, question.new_path)};
  if (question.op == Op::kExchange) {
    events.push_back(event(Effect::kMake, question.path));
  }
  return events;
}

bool CountsTowards(const Question& question, const Limit& limit) {
  const Op op = question.op;
  if (limit.of == Measure::kBytesWritten) return op == Op::kWrite;
  if (limit.of == Measure::kInodesMade) {
    return op == Op::kCreate || op == Op::kMkdir || op == Op::kMknod ||
           op == Op::kSymlink;
  }
  if (question.layer != Layer::kBase) return false;
  if (op == Op::kUnlink || op == Op::kRmdir) return limit.Counts(question.path);
  // A commit sees what is there afterwards: something.
  const bool replaces = op == Op::kRename && !question.new_path.empty();
  return replaces && !limit.at_commit && limit.Counts(question.new_path);
}

Answer Explain(const Policy& policy, const Question& question) {
  Answer answer;
  for (const Event& event : EventsOf(question)) {
    const Verdict verdict = Evaluate(policy, event);
    if (verdict.action > answer.verdict.action) answer.verdict = verdict;
    for (const Rule* rule : policy.Matching(event)) {
      const bool known =
          std::ranges::any_of(answer.matches, [&](const Match& match) {
            return match.rule == rule && match.path == event.path;
          });
      if (!known) answer.matches.push_back({rule, std::string(event.path)});
    }
  }
  for (const Limit& limit : policy.limits()) {
    if (CountsTowards(question, limit)) answer.limits.push_back(&limit);
  }
  return answer;
}

}  // namespace txfs::policy

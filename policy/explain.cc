#include "policy/explain.h"

#include <algorithm>

namespace txfs::policy {
namespace {

bool HasTwoEnds(const Proposal& proposal) {
  return !proposal.new_path.empty() &&
         (proposal.op == Op::kRename || proposal.op == Op::kExchange ||
          proposal.op == Op::kLink);
}

}  // namespace

std::vector<Event> EventsOf(const Proposal& proposal) {
  const auto event = [&](Effect effect, const std::string& path) {
    return Event{
        .op = proposal.op,
        .effect = effect,
        .path = path,
        .layer = effect == Effect::kMake && proposal.layer == Layer::kBase
                     ? Layer::kNew
                     : proposal.layer,
        .type =
            proposal.type.value_or(TypeOf(proposal.op).value_or(Type::kFile)),
        .exe = proposal.exe,
        .uid = proposal.uid};
  };
  const auto moved = [&]() {
    Event old_name = event(MainEffect(proposal.op), proposal.path);
    old_name.moved = proposal.op == Op::kRename;
    return old_name;
  };
  if (!HasTwoEnds(proposal)) {
    return {moved()};
  }
  if (proposal.op == Op::kLink) {
    return {event(Effect::kAttributes, proposal.path),
            event(Effect::kMake, proposal.new_path)};
  }
  std::vector<Event> events{moved(), event(Effect::kMake, proposal.new_path),
                            event(Effect::kRemove, proposal.new_path)};
  if (proposal.op == Op::kExchange) {
    events.push_back(event(Effect::kMake, proposal.path));
  }
  return events;
}

bool CountsTowards(const Proposal& proposal, const Limit& limit) {
  const Op op = proposal.op;
  if (limit.of == Measure::kBytesWritten) return op == Op::kWrite;
  if (limit.of == Measure::kInodesMade) {
    return op == Op::kCreate || op == Op::kMkdir || op == Op::kMknod ||
           op == Op::kSymlink;
  }
  if (op == Op::kUnlink || op == Op::kRmdir) {
    return proposal.layer == Layer::kBase && limit.Counts(proposal.path);
  }
  // The layer is that of what is moved: what it replaces may be the base's all
  // the same. A commit sees what is there afterwards: something.
  const bool replaces = op == Op::kRename && !proposal.new_path.empty();
  return replaces && !limit.at_commit && limit.Counts(proposal.new_path);
}

Explanation Explain(const Policy& policy, const Proposal& proposal) {
  Explanation explanation;
  for (const Event& event : EventsOf(proposal)) {
    const Verdict verdict = Evaluate(policy, event);
    if (verdict.action > explanation.verdict.action)
      explanation.verdict = verdict;
    for (const Rule* rule : policy.Matching(event)) {
      const bool known =
          std::ranges::any_of(explanation.matches, [&](const Match& match) {
            return match.rule == rule && match.path == event.path;
          });
      if (!known)
        explanation.matches.push_back({rule, std::string(event.path)});
    }
  }
  for (const Limit& limit : policy.limits()) {
    if (CountsTowards(proposal, limit)) explanation.limits.push_back(&limit);
  }
  return explanation;
}

}  // namespace txfs::policy

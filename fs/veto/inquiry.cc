#include "fs/veto/inquiry.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace txfs {
namespace {

Question* FindOf(std::vector<Question>& questions, const policy::Rule& rule) {
  const auto found = std::ranges::find(questions, &rule, &Question::rule);
  return found == questions.end() ? nullptr : &*found;
}

bool Has(const Question& question, const TouchedName& name) {
  return std::ranges::find(question.names, name) != question.names.end();
}

}  // namespace

std::unexpected<Error> Veto(const policy::Rule& rule,
                            std::string_view because) {
  return std::unexpected(Error{.code = rule.error,
                               .message = rule.reason,
                               .hint = rule.suggest,
                               .kind = ErrorKind::kVetoed,
                               .rule = rule.id,
                               .because = std::string(because)});
}

Status Inquiry::Note(const std::shared_ptr<const policy::Policy>& policy,
                     const policy::Rule& rule, const policy::Event& event) {
  TouchedName name{.effect = event.effect,
                   .path = std::string(event.path),
                   .layer = event.layer};
  // Each round may have granted one more question.
  const bool granted =
      std::ranges::any_of(granted_, [&](const Question& question) {
        return question.rule == &rule && Has(question, name);
      });
  if (granted) return {};
  Question* question = FindOf(open_, rule);
  if (question == nullptr) {
    question = &open_.emplace_back();
    question->policy = policy;
    question->rule = &rule;
  }
  if (Has(*question, name)) return {};
  if (question->names.size() == kMaxNames) {
    return Veto(rule, event.path);
  }
  question->names.push_back(std::move(name));
  return {};
}

Status Inquiry::Check(const Change& change) {
  if (open_.empty()) return {};
  for (Question& question : open_) {
    question.op = change.op;
    question.path = change.path;
    question.new_path = change.new_path;
    question.exe = change.exe;
  }
  due_ = true;
  return Veto(*open_.front().rule, open_.front().names.front().path);
}

void Inquiry::Grant() {
  std::ranges::move(open_, std::back_inserter(granted_));
  open_.clear();
  due_ = false;
}

}  // namespace txfs

#include "cli/daemon/live_policy.h"

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/judgement.h"
#include "cli/protocol/wire.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr const char* kTell = "policy";
constexpr const char* kReload = "reload_policy";
constexpr const char* kJudge = "judge";

}  // namespace

bool LivePolicy::IsAsked(const Json& request) {
  const std::string name = GetBytes(request, "request");
  return name == kTell || name == kReload || name == kJudge;
}

Status LivePolicy::Handle(const Json& request, const FrameSink& sink) {
  const auto answer = [&](const FrameSink& checked) -> Status {
    if (GetBytes(request, "request") == kJudge) {
      return AnswerJudged(request, checked);
    }
    if (GetBytes(request, "request") == kReload) TRY(Reload());
    Frame frame;
    {
      const MutexLock lock(mutex_);
      frame.header["files"] = ArrayOf(texts_);
    }
    return checked(frame);
  };
  return AnswerWith(answer, sink);
}

Status LivePolicy::AnswerJudged(const Json& request, const FrameSink& sink) {
  const auto rules = TRY(Rules());
  const auto is_in_base = [&](const std::string& path) {
    // Renames of the transaction are left out: the operation itself will be
    // judged exactly.
    const auto base = workspace_.OpenBase();
    return !base || StatBelow(base->get(), path).has_value();
  };
  static const policy::Policy kNone;
  const policy::Policy& judge = rules ? *rules : kNone;
  Frame frame;
  if (const auto text = AnswerExplain(request, judge)) {
    frame.header["text"] = EncodeBytes(*text);
  } else {
    frame.header["verdict"] =
        ToJson(TRY(AnswerJudge(request, judge, is_in_base)));
  }
  return sink(frame);
}

Result<std::shared_ptr<const policy::Policy>> LivePolicy::Rules() {
  std::vector<policy::SourceText> texts;
  uint64_t reloads = 0;
  {
    const MutexLock lock(mutex_);
    if (has_rules_) return rules_;
    texts = texts_;
    reloads = reloads_;
  }
  auto rules = TRY(policy::Compile(texts));
  const MutexLock lock(mutex_);
  if (reloads == reloads_) {
    rules_ = rules;
    has_rules_ = true;
  }
  return rules;
}

uint64_t LivePolicy::Reloads() {
  const MutexLock lock(mutex_);
  return reloads_;
}

Status LivePolicy::Reload() {
  const MutexLock reload(reload_mutex_);
  TRY(CheckOutOfReach(sources_, reach_));
  const UniqueFd base = TRY(workspace_.OpenBase());
  auto texts = TRY(policy::ReadSources(sources_, base.get()));
  auto policy = TRY(policy::Compile(texts));
  TRY(CheckHookOutOfReach(policy.get(), reach_));
  if (!checks_reads_ && policy && policy->Cares(policy::kReading)) {
    return Fail(0, "the rules about reading take effect only at a mount",
                "unmount the workspace and mount it again");
  }
  workspace_.UsePolicy(policy);
  approvals_.EndAll();
  const MutexLock lock(mutex_);
  texts_ = std::move(texts);
  rules_ = std::move(policy);
  has_rules_ = true;
  ++reloads_;
  return {};
}

}  // namespace txfs::cli

#include "cli/daemon/live_policy.h"

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {
namespace {

constexpr const char* kTell = "policy";
constexpr const char* kReload = "reload_policy";

}  // namespace

bool LivePolicy::IsAsked(const Json& request) {
  const std::string name = GetBytes(request, "request");
  return name == kTell || name == kReload;
}

Status LivePolicy::Handle(const Json& request, const FrameSink& sink) {
  const auto answer = [&](const FrameSink& checked) -> Status {
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

Result<std::shared_ptr<const policy::Policy>> LivePolicy::Rules() {
  std::vector<policy::SourceText> texts;
  {
    const MutexLock lock(mutex_);
    texts = texts_;
  }
  return policy::Compile(texts);
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
  workspace_.UsePolicy(std::move(policy));
  approvals_.EndAll();
  const MutexLock lock(mutex_);
  texts_ = std::move(texts);
  ++reloads_;
  return {};
}

}  // namespace txfs::cli

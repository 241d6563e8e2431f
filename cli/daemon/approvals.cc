#include "cli/daemon/approvals.h"

#include <algorithm>

#include "cli/daemon/log.h"
#include "cli/output/text.h"
#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/pending.h"
#include "cli/protocol/wire.h"
#include "fs/host/mount_table.h"
#include "fs/host/process_identity.h"

namespace txfs::cli {
namespace {

using Answer = ApprovalQueue::Answer;

constexpr const char* kPending = "pending";
constexpr const char* kAnswer = "answer";
constexpr const char* kDenyWaiting = "deny-waiting";
constexpr const char* kHint =
    "do it from a terminal of your own, outside of the mount";

std::string_view WhyNot(Answer answer) {
  switch (answer) {
    case Answer::kLate:
      return "there was no answer in time";
    case Answer::kFull:
      return "too many operations wait for an answer already";
    case Answer::kEnded:
      return "the wait ended before an answer";
    case Answer::kInterrupted:
      return "a signal came before an answer";
    default:
      return "the answer was no";
  }
}

Error Refused(const char* what, const char* hint) {
  return {
      .code = EPERM, .message = what, .hint = hint, .kind = ErrorKind::kFailed};
}

}  // namespace

Status Approvals::Decide(const Caller& caller,
                         std::span<const Question> questions) {
  // Nobody is asked about what a program refuses.
  for (const auto action : {policy::Action::kHook, policy::Action::kAsk}) {
    for (const Question& question : questions) {
      if (question.rule->action == action) TRY(Put(caller, question));
    }
  }
  return {};
}

Status Approvals::Put(const Caller& caller, const Question& question) {
  const bool by_hook = question.rule->action == policy::Action::kHook;
  Status answer =
      by_hook ? AskHook(caller, question) : AskSomebody(caller, question);
  if (answer) return answer;
  LogInfo(std::string(OpName(question.op)) + " " +
          EscapeControls(question.path) + " refused by " + question.rule->id +
          ": " + EscapeControls(answer.error().ToString()));
  return Veto(*question.rule, question.names.front().path);
}

Status Approvals::AskSomebody(const Caller& caller, const Question& question) {
  // A program has only so long, people have not; and who stored what the
  // kernel writes back may be gone, while the kernel waits for its pages.
  if (!caller.known) {
    return Fail(0, "a write-back by the kernel cannot wait for an answer");
  }
  const Answer answer = queue_.Ask(caller, question);
  if (answer == Answer::kYes) return {};
  return Fail(0, WhyNot(answer));
}

Status Approvals::AskHook(const Caller& caller, const Question& question) {
  Json json = ToJson(question);
  // People see where it lies, a program would believe it.
  const auto process = static_cast<pid_t>(caller.pid);
  if (!ProgramCounts(process, workspace_)) json["exe"] = EncodeBytes("");
  json["pid"] = caller.known ? Json(caller.pid) : Json();
  json["uid"] = caller.known ? Json(caller.uid) : Json();
  json["workspace"] = EncodeBytes(workspace_);
  json["transaction"] = transaction_();
  const auto& settings = question.policy->settings().hook;
  // Rules that name none are not loaded.
  if (!settings) return Fail(0, "there is no hook");
  const auto origin = caller.known ? HookProcess::Origin::kProcess
                                   : HookProcess::Origin::kWriteBack;
  const auto reply =
      TRY(hook_.Ask(*settings, std::move(json), origin, caller.wait));
  switch (reply.verdict) {
    case HookProcess::Verdict::kAllow:
      return {};
    case HookProcess::Verdict::kAsk:
      return AskSomebody(caller, question);
    case HookProcess::Verdict::kDeny:
      break;
  }
  return Fail(0, "the hook's answer was no: " + reply.reason);
}

bool Approvals::IsAsked(const Json& request) {
  const std::string name = GetBytes(request, "request");
  return name == kPending || name == kAnswer || name == kDenyWaiting;
}

Status Approvals::Handle(const Json& request, const FrameSink& sink,
                         pid_t peer) {
  const std::string name = GetBytes(request, "request");
  const auto answer = [&](const FrameSink& checked) -> Status {
    if (name == kDenyWaiting) {
      queue_.DenyAll();
      return checked(Frame{});
    }
    if (name == kAnswer) {
      TRY(Reply(request, peer));
      return checked(Frame{});
    }
    Json items = Json::array();
    for (const auto& item : queue_.Pending()) items.push_back(ToJson(item));
    return SendList(std::move(items), kPending, Json::object(), checked);
  };
  return AnswerWith(answer, sink);
}

Status Approvals::Reply(const Json& request, pid_t peer) {
  const uint64_t id = GetUint(request, "id");
  const auto items = queue_.Pending();
  const auto item = std::ranges::find(items, id, &ApprovalQueue::Item::id);
  const bool waits = item != items.end();
  if (waits) TRY(CheckPeer(*item, peer));
  if (waits && queue_.Reply(id, GetBool(request, "yes"))) return {};
  return Fail(0, "no question " + std::to_string(id) + " waits for an answer",
              "`txfs pending` lists the questions that wait; txfs denies a "
              "question that is not answered in time");
}

/// Not from those who wait, nor from those who work in the mount. Who runs as
/// the same user and means to get around this, can.
Status Approvals::CheckPeer(const ApprovalQueue::Item& item, pid_t peer) const {
  const auto self = ReadProcessStat(peer);
  if (!self) {
    return std::unexpected(
        Refused("cannot tell which process answers",
                "answer from where the daemon runs, not from a container"));
  }
  for (const ProcessIdentity& process : item.processes) {
    const auto waiting = ReadProcessStat(process.pid);
    if (!waiting) continue;
    if (waiting->session == self->session || DescendsFrom(peer, process.pid)) {
      return std::unexpected(Refused(
          "the session that asks cannot answer its own question", kHint));
    }
  }
  if (IsInMount(peer)) {
    return std::unexpected(Refused(
        "a process in the mount, or started from there, cannot answer", kHint));
  }
  return {};
}

bool Approvals::IsInMount(pid_t peer) const {
  const auto mount = FindTxfsMount(mountpoint_);
  return mount && DescendsFromUserOf(peer, mount->device());
}

Status Approvals::CheckAccepts(const Json& request, pid_t peer) const {
  const auto accepts = [&](const char* key) {
    return !DecodeList(GetMember(request, key)).empty();
  };
  const bool is_asked = GetBytes(request, "request") == "commit" &&
                        (accepts("accepted") || accepts("accepted_paths"));
  // Where the mount hides the workspace, users work in it, too.
  const bool may = !is_asked || mountpoint_ == workspace_ || !IsInMount(peer);
  if (may) return {};
  return std::unexpected(
      Refused("a process in the mount, or started from there, cannot accept "
              "what is held or exceeds a limit",
              kHint));
}

}  // namespace txfs::cli

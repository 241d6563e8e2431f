#include "cli/hook/hook.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <exception>
#include <tuple>
#include <utility>

#include "cli/calls/call.h"
#include "cli/hook/judge_call.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "journal/support/result.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxCall = size_t{16} << 20;
constexpr std::chrono::seconds kCallPatience{5};

/// All of stdin.
Result<std::string> ReadCall() {
  using Steady = std::chrono::steady_clock;
  const Steady::time_point deadline = Steady::now() + kCallPatience;
  std::string text;
  std::vector<char> buffer(size_t{64} << 10);
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - Steady::now());
    if (left.count() <= 0) return Fail(0, "the host does not end its input");
    pollfd ready{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    const int polled = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (polled == 0 || (polled < 0 && errno == EINTR)) continue;
    const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Fail(errno, "cannot read the call of the host");
    if (size == 0) return text;
    text.append(buffer.data(), static_cast<size_t>(size));
    if (text.size() > kMaxCall) return Fail(0, "the call has over 16 MiB");
  }
}

/// What cannot be written the host takes for no answer.
bool WriteAll(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t size = ::write(fd, text.data(), text.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    text.remove_prefix(static_cast<size_t>(size));
  }
  return true;
}

HookOutput RefuseCall(const HookHost& host, const std::string& why) {
  return host.refuse("txfs refuses this call, which it cannot judge: " + why);
}

/// Whether the hook is installed for this event.
bool IsForHook(const HookHost& host, const std::string& event) {
  return host.events.empty() ||
         std::ranges::find(host.events, event, &HookHost::Event::name) !=
             host.events.end();
}

/// The directory of the call without symbolic links, if the way there leads
/// through no mount of another user.
Result<std::string> DirectoryOfCall(const HookCall& call) {
  const auto current = CurrentDirectory();
  const std::string here = current ? *current : "/";
  return ResolveDirectory(here, call.directory.empty() ? "." : call.directory);
}

/// The command, or the files of a file tool.
std::string WorkOf(const HookCall& call) {
  if (call.command) return *call.command;
  return Join(call.files, [](const FileUse& use) { return use.path; });
}

/// Marks the begin of the call in the transaction of the mount around it, or
/// its end.
void LeaveMark(const HookHost& host, const HookCall& call, CallSite& site,
               bool is_end) {
  Client* daemon = site.Daemon();
  if (daemon == nullptr) return;
  const CallMark mark{.host = std::string(host.name),
                      .session = call.session,
                      .turn = call.turn,
                      .call = call.call,
                      .agent = call.agent,
                      .tool = call.tool,
                      .command = WorkOf(call),
                      .end = is_end};
  // Without it, the journal has the changes all the same.
  std::ignore = MarkCall(*daemon, mark);
}

HookAnswer AnswerIn(const HookHost& host, const HookCall& call) {
  const auto directory = DirectoryOfCall(call);
  if (!directory) {
    return {Decision::kAsk, "txfs cannot judge this call in its directory: " +
                                Explained(directory.error())};
  }
  CallSite site(*directory);
  if (call.event == host.end_event) {
    LeaveMark(host, call, site, true);
    return {};
  }
  HookAnswer answer = JudgeCall(call, site);
  if (answer.decision == Decision::kAsk && !(host.asks && call.obeys_ask)) {
    answer.decision = Decision::kDeny;
  }
  // A request for permission is about a call that has its mark.
  const bool is_begin =
      host.events.empty() || call.event == host.events.front().name;
  if (is_begin && answer.decision != Decision::kDeny) {
    LeaveMark(host, call, site, false);
  }
  return answer;
}

}  // namespace

HookOutput AnswerHook(const HookHost& host, std::string_view input) {
  // Stricter than hosts are: of two members of one name it is not known which
  // one the host means.
  const Json json = ParseStrictly(input);
  if (!json.is_object()) {
    return RefuseCall(host, "its input is not a JSON object");
  }
  HookCall call = host.read(json);
  if (call.event.empty() && !host.events.empty()) {
    call.event = host.events.front().name;
  }
  if (!IsForHook(host, call.event)) return host.write(call, {});
  if (!call.problem.empty() && call.event != host.end_event) {
    return RefuseCall(host, call.problem);
  }
  if (!call.is_judged()) return host.write(call, {});
  return host.write(call, AnswerIn(host, call));
}

int RunHook(const HookHost& host) {
  ::signal(SIGPIPE, SIG_IGN);
  // What other code says on stderr, a host may show or take for an error.
  SayNothing();
  HookOutput output;
  try {
    const auto input = ReadCall();
    output = input ? AnswerHook(host, *input)
                   : RefuseCall(host, input.error().ToString());
  } catch (const std::exception&) {
    // No memory, or no thread: an exit by a signal would let the call run.
    output = RefuseCall(host, "the machine has too few resources");
  }
  // Exit code 2 blocks the call where the answer is lost.
  if (!WriteAll(STDOUT_FILENO, output.out)) return 2;
  std::ignore = WriteAll(STDERR_FILENO, output.err);
  return output.code;
}

const HookHost* HookIn(const std::vector<std::string>& all) {
  constexpr size_t kWords = 3;
  if (all.size() != kWords || all[1] != "hook") return nullptr;
  return FindHookHost(all[2]);
}

}  // namespace txfs::cli

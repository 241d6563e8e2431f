#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "cli/commands.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/text.h"
#include "journal/base/unique_fd.h"

namespace txfs::cli {
namespace {

constexpr uint64_t kPage = 10'000;
constexpr int kFollowMs = 100;
constexpr int kInterrupted = 130;

std::string LogLine(const LogEntry& entry, bool json) {
  const Change& change = entry.change;
  if (!json) {
    const std::string exe = change.exe.substr(change.exe.rfind('/') + 1);
    std::string line =
        LocalTime(change.time, 6) + "  " + std::to_string(change.pid) + " " +
        (exe.empty() ? "?" : EscapeControls(exe)) + "  uid " +
        std::to_string(change.uid) + "  " + std::string(OpName(change.op)) +
        "  " + (change.path.empty() ? "." : EscapeControls(change.path));
    if (!change.new_path.empty()) {
      line += " -> " + EscapeControls(change.new_path);
    }
    line += "  " + std::string(ErrnoName(change.result));
    if (!change.rule.empty()) line += " by " + change.rule;
    return line + "\n";
  }
  Document document;
  document["lsn"] = Raw(entry.lsn);
  document["time"] = UtcTime(change.time);
  document["pid"] = change.pid;
  PutPath(document, "exe", change.exe);
  document["uid"] = change.uid;
  document["op"] = OpName(change.op);
  PutPath(document, "path", change.path);
  document["new_path"] = nullptr;
  if (!change.new_path.empty()) PutPath(document, "new_path", change.new_path);
  document["offset"] = change.offset;
  document["length"] = change.length;
  document["result"] = ErrnoName(change.result);
  document["rule"] = nullptr;
  if (!change.rule.empty()) document["rule"] = change.rule;
  return Dump(document) + "\n";
}

/// Prints what there is; `query.first` is what comes next.
Status PrintPages(Client& client, LogQuery& query, bool json, Output& output,
                  std::string& transaction) {
  for (;;) {
    const LogReply page = TRY(client.Log(query));
    // A transaction ended, the next one counts from 1 again.
    if (!transaction.empty() && page.transaction != transaction) {
      transaction.clear();
      query.first = 1;
      continue;
    }
    transaction = page.transaction;
    for (const LogEntry& entry : page.entries) {
      output.Write(LogLine(entry, json));
    }
    query.first = page.next;
    query.last = 0;
    if (page.end) return {};
  }
}

/// Ctrl-C as something that can be waited for.
UniqueFd CatchInterrupt() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  return UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC));
}

Result<int> Follow(Client& client, LogQuery& query, bool json, Output& output,
                   std::string& transaction) {
  const UniqueFd interrupt = CatchInterrupt();
  for (;;) {
    ::fflush(stdout);
    pollfd fd{.fd = interrupt.get(), .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, kFollowMs) > 0) return kInterrupted;
    TRY(PrintPages(client, query, json, output, transaction));
  }
}

Result<LogQuery> QueryOf(const Context& context, const Place& place,
                         const LogArguments& arguments) {
  LogQuery query{.first = 1,
                 .count = arguments.last == 0 ? kPage : 0,
                 .last = arguments.last,
                 .op = arguments.op.value_or(""),
                 .path = std::nullopt,
                 .denied = arguments.denied};
  if (arguments.path) {
    query.path = TRY(RelativePaths(context, place, {*arguments.path}))[0];
  }
  return query;
}

}  // namespace

Result<int> RunLog(const Context& context, const LogArguments& arguments) {
  const Place place = TRY(Locate(context));
  if (arguments.follow && place.daemon != DaemonState::kRunning) {
    return Fail(0, place.workspace + " is not mounted: nothing will follow",
                "`txfs mount` first, or leave --follow away");
  }
  LogQuery query = TRY(QueryOf(context, place, arguments));
  Client client = TRY(Connect(place));
  Output output;
  std::string transaction;
  TRY(PrintPages(client, query, arguments.json, output, transaction));
  if (arguments.follow) {
    query.count = kPage;
    return Follow(client, query, arguments.json, output, transaction);
  }
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

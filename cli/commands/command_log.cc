#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "cli/calls/call_format.h"
#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/json.h"
#include "cli/output/log_format.h"
#include "cli/output/output.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

constexpr uint64_t kPage = 10'000;
constexpr int kFollowMs = 100;
constexpr int kInterrupted = 130;

/// Turns entries into text, with a line above those of each call.
class LogText {
 public:
  LogText(const LogQuery& query, bool json)
      : json_(json), denied_(query.denied), groups_(query.op.empty()) {}

  std::string Of(const LogEntry& entry) {
    if (json_) return Dump(LogDocument(entry)) + "\n";
    if (denied_) return DenialText(entry);
    return groups_ ? Grouped(entry) : LogLine(entry);
  }

 private:
  std::string Grouped(const LogEntry& entry) {
    const Change& change = entry.change;
    const auto name =
        change.op == Op::kSavepoint ? CallNamed(change.path) : std::nullopt;
    if (name && name->end) return "";
    if (name) {
      call_ = name->number;
      const auto mark = DecodeMark(change.new_path);
      return CallHeading(call_, mark ? &*mark : nullptr);
    }
    if (entry.call == call_) return LogLine(entry);
    call_ = entry.call;
    return CallHeading(call_, nullptr) + LogLine(entry);
  }

  bool json_, denied_, groups_;
  uint64_t call_ = 0;  ///< of the last entry
};

/// Prints what there is; `query.first` is what comes next. Returns how many
/// denials are only counted.
Result<uint64_t> PrintPages(Client& client, LogQuery& query, LogText& text,
                            Output& output, std::string& transaction) {
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
      output.Write(text.Of(entry));
    }
    query.first = page.next;
    query.last = 0;
    if (page.end) return page.dropped;
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

Result<int> Follow(Client& client, LogQuery& query, LogText& text,
                   Output& output, std::string& transaction) {
  const UniqueFd interrupt = CatchInterrupt();
  for (;;) {
    ::fflush(stdout);
    pollfd fd{.fd = interrupt.get(), .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, kFollowMs) > 0) return kInterrupted;
    TRY(PrintPages(client, query, text, output, transaction));
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
    return Fail(0,
                place.workspace + " is not mounted: there is nothing to follow",
                "run `txfs mount` first, or omit --follow");
  }
  LogQuery query = TRY(QueryOf(context, place, arguments));
  Client client = TRY(Connect(place));
  Output output;
  std::string transaction;
  LogText text(query, arguments.json);
  const uint64_t dropped =
      TRY(PrintPages(client, query, text, output, transaction));
  SayDropped(dropped);
  if (arguments.follow) {
    query.count = kPage;
    return Follow(client, query, text, output, transaction);
  }
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "cli/commands.h"
#include "cli/errors.h"
#include "cli/json.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/summary_format.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

constexpr std::chrono::seconds kQuiet{1};

Document Sentences(const std::vector<std::string>& sentences) {
  Document array = Document::array();
  for (const std::string& sentence : sentences) {
    array.push_back(ToUtf8(sentence));
  }
  return array;
}

Document CommitDocument(const CommitReply& reply) {
  const bool committed = reply.report.conflicts.empty();
  Document document;
  document["id"] = reply.report.id;
  document["partial"] = reply.report.partial;
  document["state"] = committed ? "committed" : "active";
  document["changes"] = reply.report.changes;
  document["next"] = nullptr;
  if (!reply.next.empty() && committed) document["next"] = reply.next;
  document["conflicts"] = ConflictsDocument(reply.report.conflicts);
  document["withheld"] = Sentences(reply.report.withheld);
  return document;
}

std::string NextText(const std::string& next, bool partial = false) {
  if (next.empty()) return "";
  return "; transaction " + next + (partial ? " goes on" : " begun");
}

Error ConflictError(const std::string& verb, size_t conflicts) {
  return {.code = 0,
          .message = "nothing " + verb +
                     " committed: " + Count(conflicts, "path") +
                     " of the workspace changed under the transaction",
          .hint =
              "put the paths back as they were and commit again, or keep "
              "`txfs diff` as a patch, discard and apply it",
          .kind = ErrorKind::kConflict};
}

Result<int> ReportConflicts(const CommitReply& reply, bool json,
                            Output& output) {
  if (!json) SayConflicts(reply.report.conflicts);
  if (json) output.Write(Dump(CommitDocument(reply), 2) + "\n");
  TRY(output.Finish());
  return std::unexpected(ConflictError("was", reply.report.conflicts.size()));
}

/// A line on a terminal that says how far a long commit is.
class ProgressLine {
 public:
  ProgressLine() = default;
  ~ProgressLine() {
    if (shown_) std::fputs("\r\033[K", stderr);
  }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  void Show(size_t done, size_t all) {
    const auto now = std::chrono::steady_clock::now();
    if (!is_terminal_ || now - start_ < kQuiet) return;
    std::fprintf(stderr, "\r\033[Kcommitting: %zu of %zu steps", done, all);
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  const bool is_terminal_ = ::isatty(STDERR_FILENO) == 1;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  bool shown_ = false;
};

Result<CommitReply> CommitWithProgress(Client& client,
                                       const CommitOptions& options) {
  ProgressLine line;
  return client.Commit(options,
                       [&](size_t done, size_t all) { line.Show(done, all); });
}

Document PlanDocument(const PlanReport& plan) {
  Document document;
  document["id"] = plan.id;
  document["state"] = "active";
  document["changes"] = plan.changes;
  document["steps"] = Sentences(plan.steps);
  document["conflicts"] = ConflictsDocument(plan.conflicts);
  document["withheld"] = Sentences(plan.withheld);
  return document;
}

Result<int> DryRun(Client& client, const std::vector<std::string>& paths,
                   bool json) {
  const PlanReport plan = TRY(client.Plan(paths));
  Output output;
  if (json) {
    output.Write(Dump(PlanDocument(plan), 2) + "\n");
  } else {
    for (const std::string& step : plan.steps) {
      output.Write(EscapeControls(step) + "\n");
    }
    for (const std::string& sentence : plan.withheld) {
      Say("warning: " + sentence);
    }
    SayConflicts(plan.conflicts);
  }
  TRY(output.Finish());
  if (plan.conflicts.empty()) return 0;
  return std::unexpected(ConflictError("would be", plan.conflicts.size()));
}

}  // namespace

Result<int> RunCommit(const Context& context,
                      const CommitArguments& arguments) {
  const bool json = arguments.json;
  const Place place = TRY(Locate(context));
  const auto paths = TRY(RelativePaths(context, place, arguments.paths));
  Client client = TRY(Connect(place));
  if (arguments.dry_run) return DryRun(client, paths, json);
  const CommitReply reply = TRY(CommitWithProgress(
      client, {.message = arguments.message, .paths = paths}));
  Output output;
  if (!reply.report.conflicts.empty()) {
    return ReportConflicts(reply, json, output);
  }
  for (const std::string& sentence : reply.report.withheld) {
    Say("warning: " + sentence);
  }
  output.Write(json ? Dump(CommitDocument(reply), 2) + "\n"
                    : "committed " + reply.report.id + ": " +
                          Count(reply.report.changes, "change") +
                          NextText(reply.next, reply.report.partial) + "\n");
  TRY(output.Finish());
  return 0;
}

Result<int> RunDiscard(const Context& context,
                       const std::vector<std::string>& paths, bool json) {
  const Place place = TRY(Locate(context));
  const auto below = TRY(RelativePaths(context, place, paths));
  Client client = TRY(Connect(place));
  const DiscardReply reply = TRY(client.Discard(below));
  const bool partial = !below.empty();
  Document document;
  document["id"] = reply.id;
  document["partial"] = partial;
  document["state"] = partial ? "active" : "discarded";
  document["changes"] = reply.changes;
  document["next"] = nullptr;
  if (!reply.next.empty()) document["next"] = reply.next;
  Output output;
  output.Write(json ? Dump(document, 2) + "\n"
                    : (partial ? "discarded of " : "discarded ") + reply.id +
                          ": " + Count(reply.changes, "change") +
                          (partial ? "; it goes on" : NextText(reply.next)) +
                          "\n");
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

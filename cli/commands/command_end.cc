#include <unistd.h>

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/held_text.h"
#include "cli/output/json.h"
#include "cli/output/limit_text.h"
#include "cli/output/output.h"
#include "cli/output/progress_line.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "cli/protocol/wire.h"
#include "cli/rules/policy_rules.h"
#include "fs/workspace/workspace.h"
#include "journal/support/io.h"

namespace txfs::cli {
namespace {

constexpr const char* kHintOfPaths =
    "leave the paths out to resolve conflicts, or run `txfs discard PATH...` "
    "to keep the workspace's version of PATH";

constexpr const char* kHintOfRest =
    "only a commit of everything resolves conflicts: leave --without-held out "
    "and accept what is held, or run `txfs discard PATH...` to keep the "
    "workspace's version of PATH";

Document Sentences(const std::vector<std::string>& sentences) {
  Document array = Document::array();
  for (const std::string& sentence : sentences) {
    array.push_back(ToUtf8(sentence));
  }
  return array;
}

Document CommitDocument(const CommitReply& reply) {
  const bool committed = reply.report.committed();
  Document document;
  document["id"] = reply.report.id;
  document["partial"] = reply.report.partial;
  document["finished"] = nullptr;
  if (!reply.report.finished.empty())
    document["finished"] = reply.report.finished;
  document["state"] = committed ? "committed" : "active";
  document["changes"] = reply.report.changes;
  document["next"] = nullptr;
  if (!reply.next.empty() && committed) document["next"] = reply.next;
  document["conflicts"] = ConflictDocuments(reply.report.conflicts);
  document["limits"] = LimitDocuments(reply.report.limits);
  document["held"] = HeldDocuments(reply.report.held);
  document["held_more"] = HeldRestDocuments(reply.report.held);
  document["held_left"] = reply.report.held.left;
  document["resolved"] = ConflictDocuments(reply.report.resolved);
  document["withheld"] = Sentences(reply.report.withheld);
  document["savepoints_dropped"] = Sentences(reply.report.savepoints);
  document["denied"] = DeniedDocument(reply.report.denied);
  return document;
}

std::string NextText(const std::string& next, bool partial = false) {
  if (next.empty()) return "";
  return "; transaction " + next + (partial ? " stays open" : " begun");
}

std::string CommitText(const CommitReply& reply) {
  if (reply.report.nothing) return "nothing to commit\n";
  return "committed " + reply.report.id + ": " +
         Count(reply.report.changes, "change") +
         NextText(reply.next, reply.report.partial) + "\n";
}

std::string DiscardText(const DiscardReply& reply, bool partial) {
  if (reply.id.empty()) return "nothing to discard\n";
  const std::string changes = Count(reply.changes, "change");
  if (partial) {
    return "discarded " + changes + "; transaction " + reply.id +
           " stays open\n";
  }
  return "discarded " + reply.id + ": " + changes + NextText(reply.next) + "\n";
}

/// Savepoints lead back to before what is no longer part of the transaction.
void SayDropped(const std::vector<std::string>& savepoints) {
  if (savepoints.empty()) return;
  Say("dropped " + Count(savepoints.size(), "savepoint") + ": " +
      Join(savepoints));
}

/// Who asked for more asked for that, too.
void SayFinishedPart(const CommitReport& report) {
  if (report.finished.empty()) return;
  Say("the commit that had stopped half-way is finished: committed " +
      report.finished);
}

/// Who commits should know that not all was done that was tried.
void SayDenied(const CommitReport& report) {
  if (report.denied.empty()) return;
  const bool goes_on = report.partial || !report.committed();
  // What ended has its counts, no entries.
  const std::string where =
      goes_on ? "`txfs log --denied` shows them"
              : "`txfs show " + report.id + "` shows the counts";
  Say("note: the policy refused " + DeniedText(report.denied) + "; " + where);
}

std::string HintWithMarkers(const std::vector<Conflict>& conflicts) {
  const auto marked =
      std::ranges::count(conflicts, kHasMarkers, &Conflict::note);
  if (marked == 0) return "--on-conflict=mine or =theirs takes one side";
  const bool all = static_cast<size_t>(marked) == conflicts.size();
  return std::string(
             "edit the files that have conflict markers, then commit ") +
         (all ? "again" : "with --on-conflict=mine or =theirs for the others");
}

std::string HintOf(const CommitArguments& arguments,
                   const std::vector<Conflict>& conflicts) {
  if (!arguments.paths.empty()) return kHintOfPaths;
  if (arguments.without_held) return kHintOfRest;
  if (arguments.markers) return HintWithMarkers(conflicts);
  if (arguments.on_conflict == "merge") {
    return "--markers puts conflict markers into files that do not merge; "
           "--on-conflict=mine or =theirs takes one side";
  }
  return "resolve the conflicts with --on-conflict=mine, =theirs or =merge; "
         "`txfs "
         "diff` shows the transaction's side";
}

/// The command again, but for --accept and --without-held.
CommitCommand CommandOf(const CommitArguments& arguments) {
  CommitCommand command{.without_held = arguments.without_held,
                        .resolves = arguments.on_conflict != "fail"};
  for (const std::string& word : arguments.accepted) {
    command.accepted += " --accept " + QuoteShell(word);
  }
  if (arguments.on_conflict != "fail")
    command.options = " --on-conflict=" + arguments.on_conflict;
  if (arguments.markers) command.options += " --markers";
  if (!arguments.message.empty())
    command.options += " -m " + QuoteShell(arguments.message);
  if (!arguments.paths.empty()) command.paths = " --";
  for (const std::string& path : arguments.paths)
    command.paths += " " + QuoteShell(path);
  return command;
}

std::unexpected<Error> ConflictError(const std::string& verb,
                                     const CommitArguments& arguments,
                                     const std::vector<Conflict>& conflicts) {
  return Fail(
      ErrorKind::kConflict, 0,
      "nothing " + verb + " committed: " + ConflictCount(conflicts.size()),
      HintOf(arguments, conflicts));
}

/// "nothing ... committed": a part may have been, before that.
std::string VerbOf(const CommitReport& report) {
  return report.finished.empty() ? "was" : "else was";
}

Result<int> ReportStopped(const CommitReply& reply,
                          const CommitArguments& arguments, Output& output) {
  if (!arguments.json && reply.report.held.stops()) {
    SayHeld(reply.report.held);
  }
  if (arguments.json) output.Write(Dump(CommitDocument(reply), 2) + "\n");
  TRY(output.Finish());
  return StopError(VerbOf(reply.report), reply.report.limits, reply.report.held,
                   CommandOf(arguments));
}

/// Where nothing is mounted, the rules that the next mount will find: whoever
/// commits is to learn the same from them.
Result<Rules> RulesOfCommit(const Place& place) {
  if (place.daemon == DaemonState::kRunning) return nullptr;
  return RulesOfNextMount(place.real);
}

Result<int> ReportConflicts(const CommitReply& reply,
                            const CommitArguments& arguments, Output& output) {
  const std::vector<Conflict>& conflicts = reply.report.conflicts;
  if (!arguments.json) SayConflicts(conflicts);
  if (arguments.json) output.Write(Dump(CommitDocument(reply), 2) + "\n");
  TRY(output.Finish());
  return ConflictError(VerbOf(reply.report), arguments, conflicts);
}

/// What a user accepts: ids of limits and rules, and paths of the workspace.
struct Accepted {
  std::vector<std::string> ids, paths;
};

Result<Accepted> SplitAccepted(const Context& context, const Place& place,
                               const std::vector<std::string>& words) {
  const auto is_in_id = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  Accepted accepted;
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    const bool is_id = std::ranges::all_of(word, is_in_id);
    (is_id ? accepted.ids : paths).push_back(word);
  }
  accepted.paths = TRY(RelativePaths(context, place, paths));
  return accepted;
}

Result<CommitReply> CommitWithProgress(Client& client,
                                       const CommitArguments& arguments,
                                       std::vector<std::string> paths,
                                       const Accepted& accepted) {
  ProgressLine line(STDERR_FILENO);
  const CommitRequest request{
      .message = arguments.message,
      .paths = std::move(paths),
      .on_conflict = OnConflictFromName(arguments.on_conflict),
      .markers = arguments.markers,
      .accepted = accepted.ids,
      .accepted_paths = accepted.paths,
      .without_held = arguments.without_held};
  return client.Commit(request,
                       [&](size_t done, size_t all) { line.Show(done, all); });
}

Document PlanDocument(const PlanReport& plan) {
  Document document;
  document["id"] = plan.id;
  document["state"] = "active";
  document["changes"] = plan.changes;
  document["steps"] = Sentences(plan.steps);
  document["conflicts"] = ConflictDocuments(plan.conflicts);
  document["limits"] = LimitDocuments(plan.limits);
  document["held"] = HeldDocuments(plan.held);
  document["held_more"] = HeldRestDocuments(plan.held);
  document["held_left"] = plan.held.left;
  document["withheld"] = Sentences(plan.withheld);
  return document;
}

Result<int> DryRun(Client& client, const std::vector<std::string>& paths,
                   const Accepted& accepted, const CommitArguments& arguments) {
  const PlanReport plan =
      TRY(client.Plan({.paths = paths,
                       .accepted = accepted.ids,
                       .accepted_paths = accepted.paths,
                       .without_held = arguments.without_held}));
  Output output;
  if (arguments.json) {
    output.Write(Dump(PlanDocument(plan), 2) + "\n");
  } else {
    for (const std::string& step : plan.steps) {
      output.Write(EscapeControls(step) + "\n");
    }
    for (const std::string& sentence : plan.withheld) {
      Say("warning: " + sentence);
    }
    SayConflicts(plan.conflicts);
    SayExceeded(plan.limits);
    if (plan.held.stops()) SayHeld(plan.held);
    SayHeldOutcome(plan.held);
  }
  TRY(output.Finish());
  if (!plan.conflicts.empty()) {
    return ConflictError("would be", arguments, plan.conflicts);
  }
  if (AnyStops(plan.limits) || plan.held.stops()) {
    return StopError("would be", plan.limits, plan.held, CommandOf(arguments));
  }
  return 0;
}

Status CheckArguments(const CommitArguments& arguments) {
  if (arguments.markers && arguments.on_conflict != "merge") {
    return Fail(ErrorKind::kUsage, 0,
                "--markers is for --on-conflict=merge only",
                "add --on-conflict=merge, or leave --markers out");
  }
  if (arguments.on_conflict == "fail") return {};
  if (arguments.without_held) {
    return Fail(ErrorKind::kUsage, 0,
                "--on-conflict works only for a commit of everything",
                "leave --without-held out, and accept what is held");
  }
  if (arguments.dry_run) {
    return Fail(
        ErrorKind::kUsage, 0,
        "--dry-run does not resolve conflicts: it takes no --on-conflict",
        "leave --on-conflict out to list the conflicts");
  }
  if (!arguments.paths.empty()) {
    return Fail(ErrorKind::kUsage, 0,
                "--on-conflict works only for a commit without paths",
                kHintOfPaths);
  }
  return {};
}

}  // namespace

Result<int> RunCommit(const Context& context,
                      const CommitArguments& arguments) {
  TRY(CheckArguments(arguments));
  const Place place = TRY(Locate(context));
  const auto paths = TRY(RelativePaths(context, place, arguments.paths));
  const Accepted accepted =
      TRY(SplitAccepted(context, place, arguments.accepted));
  Rules rules = TRY(RulesOfCommit(place));
  const auto what_waits =
      arguments.dry_run ? WhatWaits::kGoOnWaiting : WhatWaits::kDenied;
  Client client = TRY(ConnectFlushed(place, what_waits, std::move(rules)));
  if (arguments.dry_run) return DryRun(client, paths, accepted, arguments);
  const CommitReply reply =
      TRY(CommitWithProgress(client, arguments, paths, accepted));
  LookUpMoved(place, client);
  if (!arguments.json) {
    SayFinishedPart(reply.report);
    SayDenied(reply.report);
  }
  Output output;
  if (!reply.report.conflicts.empty()) {
    return ReportConflicts(reply, arguments, output);
  }
  if (AnyStops(reply.report.limits) || reply.report.held.stops()) {
    return ReportStopped(reply, arguments, output);
  }
  if (!arguments.json) {
    SayExceeded(reply.report.limits);
    SayHeldOutcome(reply.report.held);
  }
  for (const Conflict& conflict : reply.report.resolved) {
    if (!arguments.json) Say("resolved: " + ConflictText(conflict));
  }
  for (const std::string& sentence : reply.report.withheld) {
    Say("warning: " + sentence);
  }
  if (!arguments.json) SayDropped(reply.report.savepoints);
  output.Write(arguments.json ? Dump(CommitDocument(reply), 2) + "\n"
                              : CommitText(reply));
  TRY(output.Finish());
  return 0;
}

namespace {

Result<DiscardReply> DiscardAt(const Place& place,
                               const std::vector<std::string>& paths) {
  auto client = ConnectFlushed(place, WhatWaits::kDenied);
  const bool is_full = !client && IsFull(client.error()) && paths.empty() &&
                       place.daemon != DaemonState::kRunning;
  if (is_full) {
    const WorkspaceOptions options = TRY(OptionsOf(place));
    const DiscardReport report = TRY(Workspace::DiscardUnread(options));
    Say("note: the disk is too full to open the transaction: its changes were "
        "not counted");
    return DiscardReply{.id = report.id};
  }
  Client connected = TRY(std::move(client));
  DiscardReply reply = TRY(connected.Discard(paths));
  LookUpMoved(place, connected);
  return reply;
}

}  // namespace

Result<int> RunDiscard(const Context& context,
                       const std::vector<std::string>& paths, bool json) {
  const Place place = TRY(Locate(context));
  const auto below = TRY(RelativePaths(context, place, paths));
  const DiscardReply reply = TRY(DiscardAt(place, below));
  const bool partial = !below.empty();
  Document document;
  document["id"] = reply.id;
  document["partial"] = partial;
  document["state"] = partial ? "active" : "discarded";
  document["changes"] = reply.changes;
  document["next"] = nullptr;
  if (!reply.next.empty()) document["next"] = reply.next;
  document["savepoints_dropped"] = Sentences(reply.savepoints);
  if (!json) SayDropped(reply.savepoints);
  Output output;
  output.Write(json ? Dump(document, 2) + "\n" : DiscardText(reply, partial));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

#include <set>
#include <span>

#include "cli/commands/commands.h"
#include "cli/diff/diff_format.h"
#include "cli/diff/diff_print.h"
#include "cli/locate/locate.h"
#include "cli/output/conflict_text.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

std::string Field(const char* key, const std::string& value) {
  std::string line = key;
  line.resize(13, ' ');
  return line + value + "\n";
}

std::string StateText(const TransactionSummary& summary) {
  std::string text(StateName(summary.state));
  if (summary.undoable) text += ", can be undone";
  if (!summary.undone_by.empty()) text += ", undone by " + summary.undone_by;
  return text;
}

std::string KindText(const TransactionSummary& summary) {
  const std::string kind(KindName(summary.kind));
  return summary.of.empty() ? kind : kind + " of " + summary.of;
}

std::string RunLines(const RunRecord& run) {
  std::string outcome = RunOutcomeText(run);
  if (run.milliseconds != 0) outcome += ", " + Seconds(run.milliseconds);
  outcome += ", began " + LocalTime(run.begin, 0);
  if (!run.profile.empty()) {
    outcome += ", profile " + EscapeControls(run.profile);
  }
  return Field("run", EscapeControls(run.id) + "  " + RunCommandText(run)) +
         Field("", outcome);
}

/// What there is to say before the diff.
std::string Header(const TransactionSummary& summary) {
  std::string text = Field("transaction", summary.id);
  if (!summary.name.empty()) {
    text += Field("name", EscapeControls(summary.name));
  }
  text += Field("kind", KindText(summary));
  text += Field("state", StateText(summary));
  if (!summary.author.empty()) {
    text += Field("author", EscapeControls(summary.author));
  }
  text += Field("began", LocalTime(summary.created, 0));
  if (IsEnded(summary)) {
    text += Field("ended", LocalTime(summary.ended, 0));
    text += Field("changes", std::to_string(summary.changes));
  }
  if (!summary.denied.empty()) {
    text += Field("refused", DeniedText(summary.denied));
  }
  for (const RunRecord& run : summary.runs) text += RunLines(run);
  if (summary.message.empty()) return text;
  text += "\n";
  for (size_t start = 0; start < summary.message.size();) {
    const size_t end =
        std::min(summary.message.find('\n', start), summary.message.size());
    text += "    " +
            EscapeControls(summary.message.substr(start, end - start)) + "\n";
    start = end + 1;
  }
  return text;
}

/// Why there is no diff; on stderr.
void SayWhyNot(const TransactionSummary& summary) {
  if (!IsEnded(summary)) {
    Say("hint: it is open: `txfs diff` shows its changes");
  } else if (summary.state == TransactionState::kCommitted) {
    Say("note: its history is no longer kept: its changes are not known");
  }
}

/// Says of which files this user may not read the content.
Result<ShownChanges> PairChanges(CommitView& view, bool is_patch,
                                 const ContentReader& read,
                                 const ContentProbe& probe) {
  std::set<std::string> paths;
  for (const Conflict& path : view.lost) paths.insert(path.path);
  std::vector<NetChange> readable;
  std::vector<NetChange> lost;
  for (NetChange& change : view.changes) {
    (paths.contains(change.path) ? lost : readable)
        .push_back(std::move(change));
  }
  auto closed = TRY(TakeClosed(readable, probe));
  SayClosed(closed);
  if (is_patch) lost.clear();
  return ShowChanges(std::move(readable), std::move(closed), std::move(lost),
                     read);
}

Document ShowDocument(const CommitView& view, const ShownChanges& shown) {
  Document document = SummaryDocument(view.summary);
  document["diff"] = nullptr;
  if (!view.has_changes) return document;
  document["diff"] = Document::array();
  for (const FileChange& change : shown.changes) {
    document["diff"].push_back(ChangeDocument(change));
  }
  document["lost"] = ConflictDocuments(view.lost);
  return document;
}

void SayWhatIsLost(const CommitView& view) {
  for (const Conflict& path : view.lost) {
    Say("note: " + path.path + " was " + path.reason +
        " in the workspace since: its content is not shown");
  }
}

}  // namespace

Result<int> RunShow(const Context& context, const ShowArguments& arguments) {
  const auto wanted = TRY(WantedTransaction(context, arguments.transaction));
  if (!wanted) {
    return Fail(ErrorKind::kUsage, 0, "show needs a transaction",
                "name one that `txfs list` shows: txfs show ID");
  }
  Client client = TRY(ConnectArchive(context));
  CommitView view = TRY(client.Show(*wanted));
  const ContentReader read = [&](std::span<const WantedSide> sides) {
    return client.ReadEnded(sides, kPatchContentMax);
  };
  const ContentProbe probe = [&](std::span<const WantedSide> sides) {
    return client.ProbeEnded(sides);
  };
  const bool names_only = arguments.style.name_status;
  const bool is_patch = !names_only && !arguments.json;
  const ShownChanges shown = TRY(PairChanges(view, is_patch, read, probe));
  Output output;
  if (arguments.json) {
    output.Write(Dump(ShowDocument(view, shown), 2) + "\n");
    TRY(output.Finish());
    return 0;
  }
  if (!view.has_changes) SayWhyNot(view.summary);
  if (!names_only) SayWhatIsLost(view);
  if (!names_only) SayWhatIsMissing(shown.changes);
  if (!arguments.no_pager) output.StartPager();
  output.Write(Header(view.summary));
  if (view.has_changes) {
    output.Write("\n");
    TRY(PrintChanges(arguments.style, shown.changes, read, output));
  }
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

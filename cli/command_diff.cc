#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/diff_format.h"
#include "cli/errors.h"
#include "cli/locate.h"
#include "cli/output.h"
#include "cli/patch.h"
#include "cli/text.h"

namespace txfs::cli {
namespace {

size_t TerminalColumns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return 80;
}

Status PrintPatch(const std::vector<FileChange>& changes,
                  const ContentReader& read, bool colour, Output& output) {
  return WritePatch(changes, read, [&](LineStyle style, std::string_view text) {
    output.Write(colour ? Coloured(style, text) : std::string(text));
    return !output.closed();
  });
}

Status Print(const DiffArguments& arguments,
             const std::vector<FileChange>& changes, const ContentReader& read,
             Output& output) {
  if (arguments.json) {
    output.Write(JsonArray(changes));
    return {};
  }
  if (!arguments.no_pager) output.StartPager();
  if (arguments.name_status) {
    for (const FileChange& change : changes) {
      output.Write(NameStatusLine(change, arguments.nul));
    }
    return {};
  }
  if (arguments.stat) {
    const std::vector<StatRow> rows = TRY(StatRows(changes, read));
    output.Write(StatTable(rows, TerminalColumns()));
    return {};
  }
  const bool colour = arguments.color == "always" ||
                      (arguments.color == "auto" && Output::IsTerminal());
  return PrintPatch(changes, read, colour, output);
}

/// What the patch leaves out, on stderr.
void SayWhatIsMissing(const std::vector<FileChange>& changes) {
  size_t internal = 0;
  for (const FileChange& change : changes) {
    if (IsGitInternal(change.net.path)) {
      ++internal;
    } else if (IsTooLarge(change)) {
      Say("note: " + change.net.path +
          " is over 256 MiB: the patch is incomplete without it");
    }
  }
  if (internal != 0) {
    Say("note: " + Count(internal, "change") +
        " below .git left out, which git takes no patches for; --name-status "
        "and --json have them");
  }
}

}  // namespace

Result<int> RunDiff(const Context& context, const DiffArguments& arguments) {
  const Place place = TRY(Locate(context));
  const auto below = TRY(RelativePaths(context, place, arguments.paths));
  Client client = TRY(Connect(place));
  const ContentReader read = [&](const ChangeSide& side, bool before) {
    return client.ReadContent(side, before, kPatchContentMax, arguments.since);
  };
  std::vector<NetChange> net =
      TRY(client.Changes(true, below, arguments.since));
  bool skipped = false;
  const auto changes = TRY(FileChanges(std::move(net), read, &skipped));
  if (skipped) {
    Say("note: too many files were added and deleted to look for renames among "
        "them");
  }
  if (!arguments.json && !arguments.name_status) SayWhatIsMissing(changes);
  Output output;
  TRY(Print(arguments, changes, read, output));
  TRY(output.Finish());
  return 0;
}

}  // namespace txfs::cli

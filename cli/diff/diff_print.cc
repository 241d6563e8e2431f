#include "cli/diff/diff_print.h"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "cli/diff/diff_format.h"
#include "cli/diff/patch.h"
#include "cli/output/errors.h"
#include "cli/output/text.h"
#include "fs/host/process_identity.h"

namespace txfs::cli {
namespace {

size_t TerminalColumns() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return size.ws_col;
  }
  return 80;
}

/// For a terminal: what is not seen for what it is, and could hide or change
/// what is (escape sequences, text that runs backwards), is escaped.
std::string Seen(std::string_view text) {
  std::string seen;
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\t\n"), text.size());
    std::string_view part = text.substr(0, end);
    const bool is_crlf =
        part.ends_with('\r') && end < text.size() && text[end] == '\n';
    if (is_crlf) part.remove_suffix(1);
    seen += EscapeControls(part);
    seen += text.substr(part.size(), end + 1 - part.size());
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return seen;
}

Status PrintPatch(const std::vector<FileChange>& changes,
                  const ContentReader& read, bool colour, Output& output) {
  return WritePatch(changes, read, [&](LineStyle style, std::string_view text) {
    const std::string shown =
        Output::IsTerminal() ? Seen(text) : std::string(text);
    output.Write(colour ? Coloured(style, shown) : shown);
    return !output.closed();
  });
}

/// Whether the mode lets this user list and search a directory.
bool MayList(const Attr& attr) {
  if (::geteuid() == 0) return true;
  constexpr uint32_t kListed = S_IROTH | S_IXOTH;
  uint32_t mode = attr.mode;
  if (attr.uid == ::geteuid()) {
    mode >>= 6;
  } else if (OwnGroups().contains(attr.gid)) {
    mode >>= 3;
  }
  return (mode & kListed) == kListed;
}

/// Whether it comes or goes with content that this user cannot know.
bool IsClosedDirectory(const FileChange& change) {
  const auto& side = change.net.before ? change.net.before : change.net.after;
  return change.status != 'M' && side->attr.type == FileType::kDirectory &&
         !MayList(side->attr);
}

}  // namespace

Status PrintChanges(const DiffStyle& style,
                    const std::vector<FileChange>& changes,
                    const ContentReader& read, Output& output) {
  if (style.name_status) {
    for (const FileChange& change : changes) {
      output.Write(NameStatusLine(change, style.nul));
    }
    return {};
  }
  if (style.stat) {
    const std::vector<StatRow> rows = TRY(StatRows(changes, read));
    output.Write(StatTable(rows, TerminalColumns()));
    return {};
  }
  const bool colour = style.color == "always" ||
                      (style.color == "auto" && Output::IsTerminal());
  return PrintPatch(changes, read, colour, output);
}

void SayClosed(const std::vector<NetChange>& changes) {
  for (const NetChange& change : changes) {
    Say("note: " + change.path + " cannot be read: its content is not shown");
  }
}

void SayWhatIsMissing(const std::vector<FileChange>& changes) {
  size_t internal = 0;
  for (const FileChange& change : changes) {
    if (IsGitInternal(change.net.path)) {
      ++internal;
    } else if (IsClosedDirectory(change)) {
      Say("note: " + change.net.path +
          " cannot be listed: the patch is incomplete without its files");
    } else if (IsTooLarge(change) && !change.closed) {
      Say("note: " + change.net.path +
          " is over 256 MiB: the patch is incomplete without it");
    }
  }
  if (internal != 0) {
    Say("note: " + Count(internal, "change") +
        " below .git left out: git does not apply patches there; "
        "--name-status and --json list them");
  }
}

}  // namespace txfs::cli

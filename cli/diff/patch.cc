#include "cli/diff/patch.h"

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

std::string OldPath(const NetChange& net) {
  return net.old_path.empty() ? net.path : net.old_path;
}

/// For content that is too large. Not a patch to apply, and `git apply` says
/// so.
std::string LargeFilePatch(const NetChange& net) {
  const std::string a = QuotePath("a/" + OldPath(net));
  const std::string b = QuotePath("b/" + net.path);
  return "diff --git " + a + " " + b + "\nBinary files " +
         (net.before ? a : "/dev/null") + " and " +
         (net.after ? b : "/dev/null") + " differ\n";
}

/// Of a change whose content this user may not read. As a line that `git apply`
/// ignores.
std::string ClosedFileLine(const FileChange& change) {
  std::string what = "changed";
  if (change.status == 'A') what = "added";
  if (change.status == 'D') what = "deleted";
  if (change.status == 'R') {
    what = "renamed from " + QuotePath(change.net.old_path);
  }
  return "# txfs: " + what + ", content cannot be read  " +
         QuotePath(change.net.path) + "\n";
}

uint64_t SizeOf(const std::optional<ChangeSide>& side) {
  return side ? side->attr.size : 0;
}

}  // namespace

Status WritePatch(const std::vector<FileChange>& changes,
                  const ContentReader& read, const PatchSink& sink) {
  bool wanted = true;
  const auto put = [&](LineStyle style, std::string_view text) {
    wanted = wanted && sink(style, text);
  };
  ContentsAhead contents(changes, read);
  for (const FileChange& change : changes) {
    if (!wanted) return {};
    if (IsGitInternal(change.net.path)) continue;
    if (const std::string note = DescribeAttributes(change); !note.empty()) {
      put(LineStyle::kPlain,
          "# txfs: " + note + "  " + QuotePath(change.net.path) + "\n");
    }
    if (!IsInPatch(change)) continue;
    if (IsTooLarge(change)) {
      put(LineStyle::kHeader, LargeFilePatch(change.net));
      continue;
    }
    const auto diff = TRY(DiffOf(change, contents));
    if (diff) {
      TRY(diff->Print(put));
    } else {
      put(LineStyle::kPlain, ClosedFileLine(change));
    }
  }
  return {};
}

Result<std::vector<StatRow>> StatRows(const std::vector<FileChange>& changes,
                                      const ContentReader& read) {
  std::vector<StatRow> rows;
  ContentsAhead contents(changes, read);
  for (const FileChange& change : changes) {
    if (!IsInPatch(change)) continue;
    StatRow row{.name = StatName(change),
                .lines = {},
                .old_size = SizeOf(change.net.before),
                .new_size = SizeOf(change.net.after)};
    if (IsTooLarge(change)) {
      row.lines.binary = true;
    } else {
      const auto diff = TRY(DiffOf(change, contents));
      row.closed = !diff;
      if (diff) row.lines = TRY(diff->CountLines());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace txfs::cli

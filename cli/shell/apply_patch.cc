#include "cli/shell/apply_patch.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace txfs::cli {
namespace {

/// White space of Unicode, and what JavaScript takes for it.
constexpr std::array<std::string_view, 26> kBlanks{
    " ",      "\t",     "\n",     "\v",     "\f",     "\r",     "\u0085",
    "\u00A0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
    "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200A", "\u2028",
    "\u2029", "\u202F", "\u205F", "\u3000", "\uFEFF"};
constexpr std::string_view kUpdateFile = "*** Update File:";
constexpr std::array<std::string_view, 3> kPlainBlanks{" ", "\t", "\r"};

std::string_view Trimmed(std::string_view text,
                         std::span<const std::string_view> blanks) {
  bool again = true;
  while (again) {
    again = false;
    for (const std::string_view blank : blanks) {
      const bool begins = text.starts_with(blank);
      if (begins) text.remove_prefix(blank.size());
      const bool ends = text.ends_with(blank);
      if (ends) text.remove_suffix(blank.size());
      again = again || begins || ends;
    }
  }
  return text;
}

/// What follows `head` in `line`.
std::optional<std::string> After(std::string_view line, std::string_view head) {
  if (!line.starts_with(head)) return std::nullopt;
  return std::string(Trimmed(line.substr(head.size()), kBlanks));
}

/// Whether `line`, which has no blanks around it, names a file.
/// `follows_update`: the line before it is the head of a file to update; only
/// then does Codex move the file.
bool ReadPatchLine(std::string_view line, bool follows_update,
                   std::vector<FileUse>& files) {
  if (const auto added = After(line, "*** Add File:")) {
    files.push_back({FileUse::What::kWrite, *added});
  } else if (const auto updated = After(line, kUpdateFile)) {
    files.push_back({FileUse::What::kWrite, *updated});
  } else if (const auto deleted = After(line, "*** Delete File:")) {
    files.push_back({FileUse::What::kRemove, *deleted});
  } else if (auto moved = After(line, "*** Move to:");
             moved && follows_update) {
    files.back().what = FileUse::What::kMove;
    files.back().new_path = std::move(*moved);
  } else if (moved) {
    // Codex takes this line as content. A host that does move the file writes
    // this path.
    files.push_back({FileUse::What::kWrite, std::move(*moved)});
  } else {
    return false;
  }
  return true;
}

}  // namespace

PatchReading FilesInPatch(std::string_view patch) {
  PatchReading reading;
  bool follows_update = false;
  while (!patch.empty()) {
    const size_t end = std::min(patch.find('\n'), patch.size());
    // Codex takes these lines with blanks around them, too.
    const std::string_view line = patch.substr(0, end);
    patch.remove_prefix(std::min(end + 1, patch.size()));
    const std::string_view trimmed = Trimmed(line, kBlanks);
    const bool named = ReadPatchLine(trimmed, follows_update, reading.files);
    follows_update = trimmed.starts_with(kUpdateFile);
    if (!named) continue;
    const bool is_odd = Trimmed(line, kPlainBlanks) != trimmed;
    reading.has_odd_blanks = reading.has_odd_blanks || is_odd;
  }
  return reading;
}

}  // namespace txfs::cli

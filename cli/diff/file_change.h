#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/diff/git_diff.h"
#include "fs/diff/changes.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// A change as `txfs diff` shows it: a net change, or a deletion and an
/// addition that are a rename going by their content.
struct FileChange {
  char status = 'M';          ///< A, D, M, R or T, as in git
  unsigned similarity = 100;  ///< of a rename, percent
  NetChange net;              ///< renamed: old_path is set, whoever found it
};

/// Reads the content of a side: `before` or after.
using ContentReader =
    std::function<Result<std::string>(const ChangeSide& side, bool before)>;

/// Content over this is left out of patches, bytes.
inline constexpr uint64_t kPatchContentMax = 256ULL << 20;

/// The changes in order of path. Deletions and additions of files up to 1 MiB
/// are compared to find renames, unless there are too many, in which case
/// `*skipped` is set.
Result<std::vector<FileChange>> FileChanges(std::vector<NetChange> changes,
                                            const ContentReader& read,
                                            bool* skipped);

struct ShownChanges {
  std::vector<FileChange> all;      ///< by path
  std::vector<FileChange> at_hand;  ///< of which both sides can be read
  bool skipped = false;             ///< as of FileChanges
};
/// Those of `unreadable` stand for themselves: renames are looked for only
/// among what can be read.
Result<ShownChanges> ShowChanges(std::vector<NetChange> readable,
                                 std::vector<NetChange> unreadable,
                                 const ContentReader& read);

/// Takes those out of `changes` whose content `read` may not read (EACCES).
Result<std::vector<NetChange>> TakeClosed(std::vector<NetChange>& changes,
                                          const ContentReader& read);

/// Whether git knows files of this type.
[[nodiscard]] bool IsGitType(FileType type);
/// Whether `path` has a component ".git", which `git apply` does not touch.
[[nodiscard]] bool IsGitInternal(std::string_view path);
[[nodiscard]] uint32_t GitMode(const Attr& attr);

/// Whether content is too large for a patch.
[[nodiscard]] bool IsTooLarge(const FileChange& change);

/// The diff of one change: no deltas when git cannot say it. Reads content only
/// where it differs.
Result<GitDiff> DiffOf(const FileChange& change, const ContentReader& read);

/// What a patch cannot say about the change ("mode 0644 -> 0600"); empty when
/// there is nothing.
[[nodiscard]] std::string DescribeAttributes(const FileChange& change);

/// Similarity of a rename whose content changed; needs its content.
Result<unsigned> Similarity(const FileChange& change,
                            const ContentReader& read);

}  // namespace txfs::cli

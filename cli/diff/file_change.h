#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/diff/git_diff.h"
#include "fs/diff/changes.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// A change in `txfs diff`: a net change, or a deletion and an addition that
/// are a rename according to their content.
struct FileChange {
  char status = 'M';          ///< A, D, M, R or T, as in git
  unsigned similarity = 100;  ///< of a rename, percent
  NetChange net;              ///< renamed: old_path is set in both cases
  bool closed = false;        ///< content of a side cannot be read
};

/// Reads the content of a side; `before`: of the before side.
using ContentReader =
    std::function<Result<std::string>(const ChangeSide& side, bool before)>;

/// Larger content is left out of patches, bytes.
inline constexpr uint64_t kPatchContentMax = 256ULL << 20;

/// The changes, sorted by path. Compares deleted and added files of up to 1 MiB
/// to find renames. If there are too many, sets `*skipped` instead.
Result<std::vector<FileChange>> FileChanges(std::vector<NetChange> changes,
                                            const ContentReader& read,
                                            bool* skipped);

struct ShownChanges {
  std::vector<FileChange> all;      ///< by path
  std::vector<FileChange> at_hand;  ///< all without the lost ones
  bool skipped = false;             ///< as in FileChanges
};
/// Combines the lists. Looks for renames only among `readable`. `closed`: from
/// TakeClosed. `lost`: the base no longer has the content.
Result<ShownChanges> ShowChanges(std::vector<NetChange> readable,
                                 std::vector<NetChange> closed,
                                 std::vector<NetChange> lost,
                                 const ContentReader& read);

/// Returns the error with which a read of a side fails, if any.
using ContentProbe = std::function<Status(const ChangeSide& side, bool before)>;
/// Removes the changes of which this user may not read the content from
/// `changes`, and returns them.
std::vector<NetChange> TakeClosed(std::vector<NetChange>& changes,
                                  const ContentProbe& probe);

/// Whether git tracks files of this type.
[[nodiscard]] bool IsGitType(FileType type);
/// Whether `path` has a component ".git", which `git apply` does not touch.
[[nodiscard]] bool IsGitInternal(std::string_view path);
[[nodiscard]] uint32_t GitMode(const Attr& attr);

/// Whether the content is too large for a patch.
[[nodiscard]] bool IsTooLarge(const FileChange& change);

/// The diff of one change; empty if git cannot express it. Reads content only
/// where it differs. None: this user may not read the content.
Result<std::optional<GitDiff>> DiffOf(const FileChange& change,
                                      const ContentReader& read);

/// The part of the change that a patch cannot express ("mode 0644 -> 0600");
/// empty if there is none.
[[nodiscard]] std::string DescribeAttributes(const FileChange& change);

/// Similarity of a rename whose content changed. Reads its content.
Result<unsigned> Similarity(const FileChange& change,
                            const ContentReader& read);

}  // namespace txfs::cli

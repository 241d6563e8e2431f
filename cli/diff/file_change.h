#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
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

/// A side of a change whose content is wanted.
struct WantedSide {
  const ChangeSide* side = nullptr;
  bool before = false;  ///< it is a before side
};
/// The contents of sides, each with its own error.
using Contents = std::vector<Result<std::string>>;
/// Reads the contents of `sides`, of which it returns as many.
using ContentReader =
    std::function<Result<Contents>(std::span<const WantedSide> sides)>;

/// Larger content is left out of patches, bytes.
inline constexpr uint64_t kPatchContentMax = 256ULL << 20;

/// The changes, sorted by path. Compares deleted and added files of up to 1 MiB
/// to find renames. If there are too many, sets `*skipped` instead.
Result<std::vector<FileChange>> FileChanges(std::vector<NetChange> changes,
                                            const ContentReader& read,
                                            bool* skipped);

struct ShownChanges {
  std::vector<FileChange> changes;  ///< by path
  bool skipped = false;             ///< as in FileChanges
};
/// Combines the lists. Looks for renames only among `readable`. `closed`: from
/// TakeClosed. `lost`: the base no longer has the content; a patch leaves them
/// out.
Result<ShownChanges> ShowChanges(std::vector<NetChange> readable,
                                 std::vector<NetChange> closed,
                                 std::vector<NetChange> lost,
                                 const ContentReader& read);

/// Returns for each side the error with which a read of it fails, if any.
using ContentProbe = std::function<Result<std::vector<Status>>(
    std::span<const WantedSide> sides)>;
/// Removes the changes of which this user may not read the content from
/// `changes`, and returns them.
Result<std::vector<NetChange>> TakeClosed(std::vector<NetChange>& changes,
                                          const ContentProbe& probe);

/// Whether git tracks files of this type.
[[nodiscard]] bool IsGitType(FileType type);
/// Whether `path` has a component ".git", which `git apply` does not touch.
[[nodiscard]] bool IsGitInternal(std::string_view path);
[[nodiscard]] uint32_t GitMode(const Attr& attr);

/// Whether the content is too large for a patch.
[[nodiscard]] bool IsTooLarge(const FileChange& change);

/// Whether the diff of a change has text, as far as git can express it.
[[nodiscard]] bool IsInPatch(const FileChange& change);

/// The contents of both sides, as far as DiffOf needs them.
struct SideContents {
  Result<std::string> before, after;
};

/// Reads the contents for the diffs of many changes: those of the next changes
/// at once, as many as are about 1 MiB together, or those of one change.
class ContentsAhead {
 public:
  /// Both are used until the end.
  ContentsAhead(const std::vector<FileChange>& changes,
                const ContentReader& read);

  /// For a change of the list, by address; call it in the order of the list.
  Result<SideContents> Of(const FileChange& change);

 private:
  static bool IsWanted(const FileChange& change);
  Status ReadBatch();

  const ContentReader& read_;
  std::vector<const FileChange*> wanted_;
  size_t next_ = 0;                 ///< in wanted_
  std::deque<SideContents> ready_;  ///< of wanted_ from next_ on
};

/// The diff of one change; empty if git cannot express it. None: this user may
/// not read the content.
Result<std::optional<GitDiff>> DiffOf(const FileChange& change,
                                      ContentsAhead& contents);

/// The part of the change that a patch cannot express ("mode 0644 -> 0600");
/// empty if there is none.
[[nodiscard]] std::string DescribeAttributes(const FileChange& change);

}  // namespace txfs::cli

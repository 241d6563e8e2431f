#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fs/overlay/frozen.h"
#include "fs/planning/conflicts.h"
#include "journal/support/result.h"

namespace txfs {

/// How a commit resolves conflicts.
enum class OnConflict { kFail, kMine, kTheirs, kMerge };

/// Three versions of a file.
struct MergeInput {
  std::string_view path, ancestor, ours, theirs;
};
struct MergedText {
  std::string content;
  bool clean = true;  ///< else it has conflict markers in it
};
/// A three-way merge; none if a version is not text.
using TextMerge =
    std::function<Result<std::optional<MergedText>>(const MergeInput&)>;

struct ResolveOptions {
  OnConflict on_conflict = OnConflict::kFail;
  TextMerge merge;       ///< kMerge
  bool markers = false;  ///< kMerge: write conflict markers where lines clash
};

/// Adapts a transaction to a base that changed under it, by edits of the tree
/// in memory: a plan of the edited tree resolves the conflicts as the options
/// say. Without Keep, the destructor reverts the edits, so that after a failed
/// commit the transaction and its conflicts are as before. Exception: merges
/// stay if conflict markers stop the commit.
class Resolution {
 public:
  explicit Resolution(Frozen& frozen) : frozen_(frozen) {}
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

  /// Returns the remaining conflicts: if there are any, nothing may be
  /// committed.
  Result<std::vector<Conflict>> Resolve(const std::vector<Drift>& drifts,
                                        const ResolveOptions& options);
  /// Call it when the base is about to be changed.
  void Keep();

  /// Resolved conflicts.
  [[nodiscard]] const std::vector<Conflict>& resolved() const {
    return resolved_;
  }
  /// Paths at which the transaction's changes are dropped.
  [[nodiscard]] const std::vector<std::string>& dropped() const {
    return dropped_;
  }
  /// Files with new content, whose old content the kernel may have cached.
  [[nodiscard]] const std::vector<Ino>& rewritten() const { return rewritten_; }
  /// Names that lead to another object or none, which the kernel may have
  /// cached.
  [[nodiscard]] const std::vector<StaleCaches::Name>& stale_names() const {
    return stale_names_;
  }

 private:
  /// The parts of the base's new state that the transaction adopts.
  struct Take {
    bool content = false;
    bool attributes = false;  ///< those that the transaction did not change
  };
  struct Done {
    std::optional<Edit> edit;
    std::optional<Inode::Link> hidden;  ///< removed known name of `child`
    Ino child;
  };
  struct Merge {
    const Drift* drift;
    Ino target;  ///< inode with the transaction's version
    MergedText text;
  };

  void Do(Edit edit);
  void TakeBack(const Edit& edit);
  void Stay(const Drift& drift, std::string_view why = {});

  void Follow(const Drift& drift);
  Status TakeMine(const Drift& drift);
  void TakeTheirs(const Drift& drift);

  void DropName(const Inode& inode);
  void DropOldNames(const Inode& inode);
  void Rebind(const Inode& inode, const Drift& drift, Take take);
  [[nodiscard]] InodeRecord Rebound(const Inode& inode, const Drift& drift,
                                    Take take) const;
  /// Makes a place for content that no record refers to.
  Result<ContentRef> Stage(ByteSpan bytes);
  /// Copies the rest of the base's old content into the inode. False if that
  /// content is not available.
  Result<bool> CopyUp(const Inode& inode);
  /// Makes `record` and `content` the whole inode.
  Status Replace(const Inode& inode, InodeRecord record, ByteSpan content);
  /// Makes the inode, which the base no longer has, a new one.
  Result<bool> MakeNew(const Inode& inode);
  [[nodiscard]] bool HasNotedName(const Inode& inode) const;
  [[nodiscard]] std::vector<Inode::Link> OtherNames(const Inode& inode) const;
  Result<Inode*> DirectoryAt(const std::string& path);
  Inode& MakeDirectory(Inode& parent, const std::string& path);
  void Enter(const Inode& parent, const std::string& name, Ino ino);

  Status MergeDrift(const Drift& drift);
  Status MergeText(const Drift& drift, const Inode& target);
  Result<std::optional<Bytes>> ReadOurs(const Inode& inode);
  std::optional<Bytes> ReadTheirs(const Drift& drift);
  /// `lasting`: the base's version is accepted permanently, even if nothing is
  /// committed now.
  Status WriteMerge(const Merge& merge, bool lasting);

  Frozen& frozen_;
  ResolveOptions options_;
  std::vector<Conflict> remaining_, resolved_;
  std::vector<std::string> dropped_;
  std::vector<Ino> rewritten_;
  std::vector<StaleCaches::Name> stale_names_;
  std::vector<Merge> merges_;
  std::map<std::string, Ino> renewed_;  ///< by their former base path
  std::vector<Done> done_;
  std::vector<StagedContent> staged_;
  uint32_t segment_ = 0;  ///< of all staged content; 0: none yet
  uint64_t segment_end_ = 0;
};

}  // namespace txfs

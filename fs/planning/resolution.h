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

/// What a commit does about conflicts.
enum class OnConflict { kFail, kMine, kTheirs, kMerge };

/// Three versions of a file.
struct MergeInput {
  std::string_view path, ancestor, ours, theirs;
};
struct MergedText {
  std::string content;
  bool clean = true;  ///< else it has conflict markers in it
};
/// A three-way merge; nothing for what is no text.
using TextMerge =
    std::function<Result<std::optional<MergedText>>(const MergeInput&)>;

struct ResolveOptions {
  OnConflict on_conflict = OnConflict::kFail;
  TextMerge merge;       ///< kMerge
  bool markers = false;  ///< kMerge: what does not merge gets conflict markers
};

/// Makes a transaction fit a base that changed under it: edits of the tree, in
/// memory only, after which a plan of it does what was asked for. Taken back at
/// destruction unless kept, so a commit that fails leaves the transaction and
/// its conflicts as they were; what was merged stays where markers stop it.
class Resolution {
 public:
  explicit Resolution(Frozen& frozen) : frozen_(frozen) {}
  ~Resolution();
  Resolution(const Resolution&) = delete;
  Resolution& operator=(const Resolution&) = delete;

  /// Returns the conflicts that remain: with any, nothing may be committed.
  Result<std::vector<Conflict>> Resolve(const std::vector<Drift>& drifts,
                                        const ResolveOptions& options);
  /// The base is being changed.
  void Keep();

  /// Conflicts that were resolved.
  [[nodiscard]] const std::vector<Conflict>& resolved() const {
    return resolved_;
  }
  /// Paths at which the transaction gives way.
  [[nodiscard]] const std::vector<std::string>& dropped() const {
    return dropped_;
  }
  /// Files whose content is another one now, which the kernel may have cached.
  [[nodiscard]] const std::vector<Ino>& rewritten() const { return rewritten_; }
  /// Names that lead to another object, or none, which the kernel may remember.
  [[nodiscard]] const std::vector<StaleCaches::Name>& stale_names() const {
    return stale_names_;
  }

 private:
  /// What of the base's new state becomes the transaction's, too.
  struct Take {
    bool content = false;
    bool attributes = false;  ///< those that the transaction did not change
  };
  struct Done {
    std::optional<Edit> edit;
    std::optional<Inode::Link> hidden;  ///< known name of `child` that went
    Ino child;
  };
  struct Merge {
    const Drift* drift;
    Ino target;  ///< inode with our version
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
  /// A place for content that no record names.
  Result<ContentRef> Stage(ByteSpan bytes);
  /// The inode's own copy of what it still has of the base's old content. False
  /// when that is not to be had.
  Result<bool> CopyUp(const Inode& inode);
  /// `record` and `content` are all there is to it.
  Status Replace(const Inode& inode, InodeRecord record, ByteSpan content);
  /// What the base no longer has is planned as new.
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
  /// `lasting`: the base's version is accepted for good, also if nothing is
  /// committed now.
  Status WriteMerge(const Merge& merge, bool lasting);

  Frozen& frozen_;
  ResolveOptions options_;
  std::vector<Conflict> remaining_, resolved_;
  std::vector<std::string> dropped_;
  std::vector<Ino> rewritten_;
  std::vector<StaleCaches::Name> stale_names_;
  std::vector<Merge> merges_;
  std::map<std::string, Ino> renewed_;  ///< by the base path that they had
  std::vector<Done> done_;
  std::vector<StagedContent> staged_;
  uint32_t segment_ = 0;  ///< where it all is; 0: nothing was staged yet
  uint64_t segment_end_ = 0;
};

}  // namespace txfs

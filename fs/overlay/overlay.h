#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/base/base_mounts.h"
#include "fs/origin/origin_reader.h"
#include "fs/overlay/content_write.h"
#include "fs/overlay/directory_cache.h"
#include "fs/overlay/doubts.h"
#include "fs/overlay/frozen.h"
#include "fs/overlay/look_ahead.h"
#include "fs/overlay/promised_space.h"
#include "fs/overlay/read_plan.h"
#include "fs/overlay/touched_inodes.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/plan.h"
#include "fs/tree/tree.h"
#include "fs/veto/judge.h"
#include "fs/veto/run_budget.h"
#include "journal/journal.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Filesystem over a base, a tree and a journal: decodes an operation, takes
/// the locks (docs/locking.md), checks, plans a change, appends it to the
/// journal, applies it to the tree, replies. OriginReader reads base content,
/// Judge applies the policy; Frozen, BaseFollower and Handover work while no
/// operation runs.
class OverlayFilesystem final : public Filesystem {
 public:
  static Result<std::unique_ptr<OverlayFilesystem>> Open(
      UniqueFd base, std::unique_ptr<Journal> journal,
      FilesystemOptions options);

  Result<Node> Lookup(Ino parent, std::string_view name) override;
  void ExpectLookups(Ino parent,
                     std::span<const std::string_view> names) override;
  std::vector<Result<Node>> LookupAll(
      Ino parent, std::span<const std::string_view> names) override;
  bool ReportsNames(Ino directory) override;
  void Forget(Ino ino, uint64_t lookups) override;
  Result<Node> Create(const Caller& caller, Ino parent, std::string_view name,
                      uint32_t mode) override;
  Result<Node> MakeNode(const Caller& caller, Ino parent, std::string_view name,
                        uint32_t mode, uint64_t rdev) override;
  Result<Node> MakeDirectory(const Caller& caller, Ino parent,
                             std::string_view name, uint32_t mode) override;
  Result<Node> MakeSymlink(const Caller& caller, Ino parent,
                           std::string_view name,
                           std::string_view target) override;
  Result<Node> CreateUnnamed(const Caller& caller, Ino directory,
                             uint32_t mode) override;
  Result<Node> Link(const Caller& caller, Ino ino, Ino parent,
                    std::string_view name) override;
  Status Unlink(const Caller& caller, Ino parent,
                std::string_view name) override;
  Status RemoveDirectory(const Caller& caller, Ino parent,
                         std::string_view name) override;
  Status Rename(const Caller& caller, Ino parent, std::string_view name,
                Ino new_parent, std::string_view new_name,
                RenameMode mode) override;
  Status ReadDirectory(
      Ino ino, uint64_t cookie,
      const std::function<bool(const DirEntry&)>& visit) override;

  Result<struct stat> GetAttr(Ino ino) override;
  Result<std::optional<Timestamp>> BirthOf(Ino ino) override;
  Result<struct stat> SetAttr(const Caller& caller, Ino ino,
                              const AttrRequest& request) override;
  Result<std::string> ReadLink(Ino ino) override;
  Result<std::string> GetXattr(Ino ino, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(Ino ino) override;
  Status SetXattr(const Caller& caller, Ino ino, std::string_view name,
                  std::string_view value, XattrMode mode) override;
  Status RemoveXattr(const Caller& caller, Ino ino,
                     std::string_view name) override;

  bool ChecksReads() override;
  Status CheckRead(const Caller& caller, Ino ino) override;
  Result<size_t> Read(Ino ino, uint64_t offset, MutableByteSpan out) override;
  Result<size_t> Write(const Caller& caller, Ino ino, uint64_t offset,
                       ByteSpan bytes, WriteMode mode) override;
  Status Allocate(const Caller& caller, Ino ino, uint64_t offset,
                  uint64_t length, AllocateMode mode) override;
  Result<size_t> CopyRange(const Caller& caller, Ino from, uint64_t from_offset,
                           Ino to, uint64_t to_offset,
                           uint64_t length) override;
  Result<uint64_t> Seek(Ino ino, uint64_t offset, int whence) override;
  Status Sync() override;
  Result<struct statvfs> StatFs() override;
  void SettleDoubts(
      const std::function<void(const StaleCaches&)>& tell) override;

  /// Reads base files in their recorded state. Call its UseVaults before the
  /// first operation.
  [[nodiscard]] OriginReader& origins() { return origins_; }
  /// `policy` judges every operation that begins after the return; null allows
  /// everything. Waits for operations in flight.
  void UsePolicy(std::shared_ptr<const policy::Policy> policy);
  /// Marks a savepoint here, with an unused name; `call`: the mark of a call.
  Result<Savepoint> MarkSavepoint(const Caller& caller, const std::string& name,
                                  const std::string& call = {});
  /// The journal of the open transaction; stays usable after it ended.
  std::shared_ptr<Journal> journal();
  /// Reads a file of the base, as ReadFully.
  Result<size_t> ReadBase(const std::string& path, uint64_t offset,
                          MutableByteSpan out);
  /// The user.* attributes of an object of the base.
  Result<std::map<std::string, std::string>> ReadBaseXattrs(
      const std::string& path);
  /// Reads `inode` of the tree at `savepoint` of the transaction of `journal`.
  /// ENOENT: the savepoint is gone.
  Result<size_t> ReadPast(const Inode& inode, const Savepoint& savepoint,
                          const std::shared_ptr<Journal>& journal,
                          uint64_t offset, MutableByteSpan out);

  /// Those of `stale` for which a LOOKUP reply may be in flight. `names` has a
  /// missing name in each parent directory (docs/design.md, "Invalidation").
  StaleCaches InFlight(const StaleCaches& stale);

  /// Runs `work` while mutations wait. `work` must not send the kernel a
  /// notification that waits for a mutation.
  template <class Work>
  auto WhileReadOnly(Work work) {
    const WriterLock lock(write_gate_);
    return work();
  }

  /// Runs `work` while all operations wait, with the commit gate held.
  template <class Work>
  auto WhileFrozen(Work work) {
    const WriterLock gate(gate_);
    const WriterLock lock(tree_mutex_);
    ahead_.Clear();
    touch_watches_.CountFreeze();
    Frozen frozen(tree_, base_, *journal_, origins_, *this);
    return work(frozen);
  }

  /// Runs `work(tree, base)` while operations that change the tree wait.
  template <class Work>
  auto WhileShared(Work work) {
    const ReaderLock gate(gate_);
    const ReaderLock lock(tree_mutex_);
    return work(std::as_const(tree_), base_);
  }

  /// Notes from now on which inodes operations change.
  [[nodiscard]] std::shared_ptr<const TouchedInodes> Watch();
  PromisedSpace& promised_space() { return promised_space_; }
  RunBudget& budget() { return budget_; }

 private:
  friend class Frozen;

  /// For the holder of WhileFrozen's locks, which the analysis cannot see.
  void AssertFrozen() const ASSERT_CAPABILITY(gate_)
      ASSERT_CAPABILITY(tree_mutex_) {}

  OverlayFilesystem(UniqueFd base, const struct stat& root,
                    std::unique_ptr<Journal> journal,
                    FilesystemOptions options);

  // Names.
  /// None: it is not of the base. ESTALE: CheckDirectory.
  Result<std::optional<PlaceOfDirectory>> CheckedPlace(Ino ino)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// The base object under a name, if any.
  Result<std::optional<BaseObject>> ProbeBase(Ino parent, std::string_view name)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Fills `nodes`, one for each of `names`; on failure, holds none.
  Status LookUpInto(std::vector<Result<Node>>& nodes, Ino parent,
                    std::span<const std::string_view> names)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  // Cached attributes of base objects: overlay_told.cc
  /// Whether base content of `inode` may be shown only while the base object
  /// matches the attributes that the kernel cached.
  [[nodiscard]] bool IsGuarded(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  /// Fails (ESTALE) if the kernel, which has `told`, may have admitted a user
  /// who may not read the opened object `now`. `ino` then stays closed until
  /// SettleDoubts, and if the kernel dropped its attributes, until the kernel
  /// has asked again. `fd`: as OriginReader::CheckTold.
  Status CheckTold(Ino ino, const Told& told, const struct stat& now,
                   int fd) const EXCLUDES(tree_mutex_);
  Status CheckTold(Ino ino, const Told& told, int fd) const
      EXCLUDES(tree_mutex_);
  uint64_t AclToldOf(Ino ino) const EXCLUDES(tree_mutex_);
  /// CheckTold of the directory at `place`, before it is read.
  Status CheckDirectory(Ino ino, const Told& told,
                        const std::string& place) const EXCLUDES(tree_mutex_);
  /// Whether the directories above `ino` match the attributes that the kernel
  /// cached. Doubts those that do not.
  bool AreAncestorsAsTold(Ino ino) const EXCLUDES(tree_mutex_);
  /// The base path of an inode of base origin, which a commit that stopped
  /// half-way may have moved. EIO: it is at neither place.
  Result<std::string> PlaceInBase(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  Inode* Child(Inode& directory, std::string_view name,
               const std::optional<BaseObject>& probe) REQUIRES(tree_mutex_);
  Result<Inode*> FindInode(Ino ino) REQUIRES_SHARED(tree_mutex_);
  Result<Inode*> FindDirectory(Ino ino) REQUIRES_SHARED(tree_mutex_);
  Node Hold(Inode& inode, uint64_t now = Clock::System().Steady())
      REQUIRES_SHARED(tree_mutex_);
  /// The attributes, which the kernel will cache.
  struct stat AnswerStat(Inode& inode) const REQUIRES_SHARED(tree_mutex_);
  Result<Node> MakeEntry(Op op, const Caller& caller, Ino parent,
                         std::string_view name, InodeRecord record);
  Result<Node> ApplyMake(Plan plan, const Caller& caller, Ino parent,
                         std::string_view name, InodeRecord record,
                         const std::map<std::string, std::string>& xattrs,
                         const std::optional<BaseObject>& probe)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// MakeEntry with questions to the approver, logged.
  Result<Node> MakeAnswered(Op op, const Caller& caller, Ino parent,
                            std::string_view name, const InodeRecord& record);
  Status JudgeRead(const Caller& caller, Ino ino);
  Status RemoveEntry(Op op, const Caller& caller, Ino parent,
                     std::string_view name);
  Status RemoveAnswered(Op op, const Caller& caller, Ino parent,
                        std::string_view name);
  Result<Node> DoLink(const Caller& caller, Ino ino, Ino parent,
                      std::string_view name);
  bool IsUnnamed(Ino ino) const EXCLUDES(tree_mutex_);
  /// Gives the unnamed file its first name, as an operation that makes it.
  Result<Node> NameUnnamed(Plan plan, Inode& directory, Inode& inode,
                           std::string_view name) REQUIRES_SHARED(gate_)
      REQUIRES(tree_mutex_);
  Result<Node> ApplyLink(Plan plan, Ino ino, Ino parent, std::string_view name,
                         const std::optional<BaseObject>& probe)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  struct NameIn {
    Ino parent;
    std::string_view name;
  };
  /// A name in a rename and its inode.
  struct RenameEnd {
    Inode* directory = nullptr;
    std::string_view name;
    Inode* inode = nullptr;  ///< null: the name is free
  };
  struct RenameProbes;
  Status DoRename(const Caller& caller, Ino parent, std::string_view name,
                  Ino new_parent, std::string_view new_name, RenameMode mode);
  /// Checks the rules of rename(2), which allow two names of one inode.
  Status CheckRename(const RenameEnd& from, const RenameEnd& to,
                     RenameMode mode) REQUIRES_SHARED(gate_, tree_mutex_);
  Status JudgeRename(Plan& plan, const RenameEnd& from, const RenameEnd& to,
                     bool exchange) REQUIRES_SHARED(gate_, tree_mutex_);
  /// Returns the inode that lost the new name, with one lookup for the caller
  /// to forget, or kNoIno.
  Result<Ino> ApplyRename(Plan plan, NameIn old_name, NameIn new_name,
                          RenameMode mode, const RenameProbes& probes)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Plans the deletion of a name. A file's recorded path moves to another one.
  void DropName(Plan& plan, const Inode& directory, std::string_view name,
                const Inode& inode) const REQUIRES_SHARED(tree_mutex_);
  Result<std::shared_ptr<const DirectorySnapshot>> Snapshot(Ino ino)
      REQUIRES_SHARED(gate_);
  std::vector<DirEntry> Merge(const Inode& directory,
                              const std::vector<BaseEntry>& base) const
      REQUIRES_SHARED(tree_mutex_);

  // Journal.
  Plan StartPlan(Op op, const Caller& caller) const;
  /// Judges by limits, appends to the journal and applies.
  Result<Lsn> Accept(Change change, const StagedContent* content = nullptr)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Appends to the journal and applies, without a judgement. EROFS: halted.
  Result<Lsn> AppendAndApply(const Change& change, const StagedContent* content)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  void ApplyToTree(const Change& change) REQUIRES_SHARED(gate_)
      REQUIRES(tree_mutex_);
  /// Appends what Frozen::Follow only applied.
  Status JournalFollowed() REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Accepts the change of `plan` unless rules have open questions about it.
  Result<Lsn> Accept(Plan&& plan) REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Accepts a change of an inode that may be an orphan. Changes of an orphan
  /// are not journaled: they end with its last descriptor.
  Result<Lsn> AcceptFor(Inode& inode, Plan&& plan,
                        const StagedContent* content = nullptr)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Counts the base for limits that need it. Call before a removal.
  Status CountBaseAhead() REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  PolicyCheck Judging(Plan& plan) REQUIRES_SHARED(gate_, tree_mutex_);
  template <class Work>
  std::invoke_result_t<Work, const Caller&> Answered(const Caller& caller,
                                                     const Work& work) {
    return txfs::Answered(options_.approver, caller, work);
  }
  /// Records a refused operation in the log.
  void LogRefusal(Op op, const Caller& caller, Ino parent,
                  std::string_view name, Ino new_parent,
                  std::string_view new_name, const Error& error);
  template <class T>
  Result<T> Logged(Result<T> result, Op op, const Caller& caller, Ino parent,
                   std::string_view name, Ino new_parent = kNoIno,
                   std::string_view new_name = {}) {
    if (!result) {
      LogRefusal(op, caller, parent, name, new_parent, new_name,
                 result.error());
    }
    return result;
  }

  // Pre-images.
  /// That of the base object under a name that an accepted change took.
  void KeepPreimage(const std::optional<BaseObject>& probe)
      EXCLUDES(tree_mutex_);

  // Attributes.
  Result<struct stat> DoSetAttr(const Caller& caller, Ino ino,
                                const AttrRequest& request);
  /// `preimage`: the one to keep after success.
  Result<struct stat> ApplyAttr(Plan plan, const Caller& caller, Ino ino,
                                const AttrRequest& request,
                                std::optional<BaseOrigin>& preimage)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Sets the attribute, or removes it without a `value`. `op`: for the log.
  Status ChangeXattr(Op op, const Caller& caller, Ino ino,
                     const std::string& name, std::optional<std::string> value,
                     XattrMode mode);
  /// The default access control list of a directory, which new entries inherit.
  Result<std::optional<std::string>> DefaultAclOf(Ino directory)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  Result<OriginXattrs> SourceOfXattrs(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  Result<std::map<std::string, std::string>> VisibleXattrs(Ino ino)
      REQUIRES_SHARED(gate_);

  // Content.
  SharedMutex& ContentLock(Ino ino) {
    return content_locks_[Raw(ino) % content_locks_.size()];
  }
  ReadPlan PlanRead(const Inode& inode, uint64_t offset, uint64_t length) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  using RangeVisitor = OriginReader::RangeVisitor;
  /// Visits the ranges of `plan` that may have nonzero bytes, in order.
  void VisitData(const ReadPlan& plan, const RangeVisitor& visit);
  Result<size_t> ReadPieces(const ReadPlan& plan, uint64_t offset,
                            MutableByteSpan out);
  /// Judges a write before its content is staged, and sets in `place` the
  /// offset of an append. Requires the content lock of `ino`.
  Result<WriteLook> LookBeforeWrite(Plan& plan, Ino ino, WritePlace& place,
                                    size_t size, WriteMode mode)
      REQUIRES_SHARED(gate_);
  Result<size_t> WriteRecord(const Caller& caller, Ino ino, WritePlace& place,
                             ByteSpan bytes, WriteMode mode);
  Status Stage(ByteSpan bytes, WriteLook& look) REQUIRES_SHARED(gate_);
  using ToKeep = Result<std::optional<BaseOrigin>>;  ///< a pre-image
  /// Applies a staged write and advances `place`.
  ToKeep ApplyWrite(Plan plan, const Caller& caller, Ino ino, WritePlace& place,
                    WriteLook& look, WriteMode mode) REQUIRES_SHARED(gate_)
      EXCLUDES(tree_mutex_);
  /// EACCES: the daemon may not read base content that the file keeps, or, with
  /// `drops_content`, that a commit would overwrite in the base file.
  Status CheckReadable(Ino ino, bool drops_content = false)
      EXCLUDES(tree_mutex_);
  Status AdoptRetired(Ino ino) REQUIRES_SHARED(gate_);
  Status DoAllocate(const Caller& caller, Ino ino, uint64_t offset,
                    uint64_t length, AllocateMode mode);
  ToKeep ApplyAllocate(Plan plan, const Caller& caller, Ino ino, Range range,
                       AllocateMode mode, const std::vector<Range>& gaps)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  void PlanTruncate(const Inode& inode, uint64_t size, Plan& plan,
                    std::vector<Extent>& released) REQUIRES_SHARED(tree_mutex_);

  const BaseDirectory base_;
  CurrentMounts mounts_{base_};
  mutable Doubts doubts_;
  const FilesystemOptions options_;
  const uint64_t cookie_seed_;
  PromisedSpace promised_space_;  ///< outlives tree_
  RunBudget budget_;
  SharedMutex write_gate_;
  SharedMutex gate_;
  std::array<SharedMutex, 64> content_locks_;
  mutable SharedMutex tree_mutex_;
  Tree tree_ GUARDED_BY(tree_mutex_);
  TouchWatches touch_watches_ GUARDED_BY(tree_mutex_);
  /// Applied to the tree, and not yet in the journal; in order.
  std::vector<Change> followed_ GUARDED_BY(tree_mutex_);
  Judge judge_ GUARDED_BY(gate_);  ///< its meters need tree_mutex_
  std::shared_ptr<Journal> journal_ GUARDED_BY(gate_);
  bool halted_ GUARDED_BY(gate_) = false;
  OriginReader origins_;
  DirectoryCache directories_;
  LookAhead ahead_;
};

}  // namespace txfs

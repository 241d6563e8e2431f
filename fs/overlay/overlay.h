#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/origin/origin_reader.h"
#include "fs/overlay/content_write.h"
#include "fs/overlay/directory_cache.h"
#include "fs/overlay/doubts.h"
#include "fs/overlay/frozen.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/plan.h"
#include "fs/tree/tree.h"
#include "fs/veto/judge.h"
#include "journal/journal.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Filesystem over a base, a tree and a journal: decodes an operation, takes
/// the locks (docs/locking.md), checks, plans a change, appends it to the
/// journal, applies it to the tree, replies. Beside it: OriginReader (what the
/// base had), Judge (whether the operation may be done), and for the time when
/// no operation runs Frozen, BaseFollower and Handover.
class OverlayFilesystem final : public Filesystem {
 public:
  static Result<std::unique_ptr<OverlayFilesystem>> Open(
      UniqueFd base, std::unique_ptr<Journal> journal,
      FilesystemOptions options);

  Result<Node> Lookup(Ino parent, std::string_view name) override;
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
  Result<struct stat> SetAttr(const Caller& caller, Ino ino,
                              const AttrRequest& request) override;
  Result<std::string> ReadLink(Ino ino) override;
  Result<std::string> GetXattr(Ino ino, std::string_view name) override;
  Result<std::vector<std::string>> ListXattrs(Ino ino) override;
  Status SetXattr(const Caller& caller, Ino ino, std::string_view name,
                  std::string_view value, XattrMode mode) override;
  Status RemoveXattr(const Caller& caller, Ino ino,
                     std::string_view name) override;

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

  /// Reads base files as they were when they were noted. Call UseVaults of it
  /// before the first operation.
  [[nodiscard]] OriginReader& origins() { return origins_; }
  /// `policy` judges every operation that begins after this has returned; null:
  /// all is allowed. Waits for those that go on.
  void UsePolicy(std::shared_ptr<const policy::Policy> policy);
  /// Marks this moment. Requires that no savepoint has the name.
  Result<Savepoint> MarkSavepoint(const Caller& caller,
                                  const std::string& name);

  /// The journal of the open transaction; stays usable after it ended.
  std::shared_ptr<Journal> journal();

  /// Reads a file of the base, as ReadFully.
  Result<size_t> ReadBase(const std::string& path, uint64_t offset,
                          MutableByteSpan out);
  /// The user.* attributes of an object of the base.
  Result<std::map<std::string, std::string>> ReadBaseXattrs(
      const std::string& path);

  /// Reads `inode` of the tree at `savepoint` of the transaction that has
  /// `journal`. ENOENT: it is gone.
  Result<size_t> ReadPast(const Inode& inode, const Savepoint& savepoint,
                          const std::shared_ptr<Journal>& journal,
                          uint64_t offset, MutableByteSpan out);

  /// The kernel may not have the answer to a lookup of a stale inode yet: then
  /// it forgets nothing of it when it is told, and keeps what the answer says.
  /// Returns those of `stale` with names, of no entries, in their directories:
  /// the kernel is done with the lookups there when it has heard of the names.
  StaleCaches InFlight(const StaleCaches& stale);

  /// Runs `work` with every mutation waiting. The kernel may be waiting for one
  /// of them: it must not be told of anything that takes its locks.
  template <class Work>
  auto WhileReadOnly(Work work) {
    const WriterLock lock(write_gate_);
    return work();
  }

  /// Runs `work` with every operation waiting: the commit gate.
  template <class Work>
  auto WhileFrozen(Work work) {
    const WriterLock gate(gate_);
    const WriterLock lock(tree_mutex_);
    Frozen frozen(tree_, base_, *journal_, origins_, *this);
    return work(frozen);
  }

 private:
  friend class Frozen;

  /// For the holder of WhileFrozen's locks, which the analysis cannot see.
  void AssertFrozen() const ASSERT_CAPABILITY(gate_)
      ASSERT_CAPABILITY(tree_mutex_) {}

  /// Where the bytes of a range come from.
  struct Piece {
    enum class Source { kZero, kBase, kSpool } source = Source::kZero;
    uint64_t offset = 0;  ///< in the file
    uint64_t length = 0;
    ContentRef content;  ///< kSpool
    uint64_t into = 0;   ///< kSpool: where in the part
  };
  /// Everything needed to read without the tree lock.
  struct ReadPlan {
    std::vector<Piece> pieces;
    OriginFile origin;
    std::shared_ptr<Journal> journal;
  };

  OverlayFilesystem(UniqueFd base, const struct stat& root,
                    std::unique_ptr<Journal> journal,
                    FilesystemOptions options);

  // Names.
  /// What the base has under a name.
  Result<std::optional<BaseObject>> ProbeBase(Ino parent, std::string_view name)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  // What the kernel was told. overlay_told.cc
  /// Whether what an inode of base origin has of the base is shown only while
  /// that is as the kernel was told.
  [[nodiscard]] bool IsGuarded(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  /// Fails (ESTALE) where `now`, of what was opened for `ino`, is not what the
  /// kernel was told, so that it may have let in who may not read it. The
  /// inode stays closed until SettleDoubts and, if the kernel dropped what it
  /// had, until it has asked again.
  Status CheckTold(Ino ino, const Told& told, const struct stat& now) const
      EXCLUDES(tree_mutex_);
  Status CheckTold(Ino ino, const Told& told, int fd) const
      EXCLUDES(tree_mutex_);
  /// The same of the directory at `place`, which is about to be looked into.
  Status CheckDirectory(Ino ino, const Told& told,
                        const std::string& place) const EXCLUDES(tree_mutex_);
  /// Whether the directories above `ino` are what the kernel was told. Doubts
  /// those that are not.
  bool AreAncestorsAsTold(Ino ino) const EXCLUDES(tree_mutex_);
  /// Where the base has an inode of base origin: a commit that has stopped
  /// half-way may have moved it. EIO: at neither of its places.
  Result<std::string> PlaceInBase(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  Inode* Child(Inode& directory, std::string_view name,
               const std::optional<BaseObject>& probe) REQUIRES(tree_mutex_);
  Result<Inode*> FindInode(Ino ino) REQUIRES_SHARED(tree_mutex_);
  Result<Inode*> FindDirectory(Ino ino) REQUIRES_SHARED(tree_mutex_);
  Node Hold(Inode& inode) REQUIRES_SHARED(tree_mutex_);
  /// The attributes, for the kernel to keep.
  struct stat AnswerStat(Inode& inode) const REQUIRES_SHARED(tree_mutex_);
  Result<Node> MakeEntry(Op op, const Caller& caller, Ino parent,
                         std::string_view name, InodeRecord record);
  Result<Node> ApplyMake(Plan plan, const Caller& caller, Ino parent,
                         std::string_view name, InodeRecord record,
                         const std::optional<BaseObject>& probe)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// MakeEntry, asking and logged.
  Result<Node> MakeAnswered(Op op, const Caller& caller, Ino parent,
                            std::string_view name, const InodeRecord& record);
  Status RemoveEntry(Op op, const Caller& caller, Ino parent,
                     std::string_view name);
  Status RemoveAnswered(Op op, const Caller& caller, Ino parent,
                        std::string_view name);
  Result<Node> DoLink(const Caller& caller, Ino ino, Ino parent,
                      std::string_view name);
  Result<Node> ApplyLink(Plan plan, Ino ino, Ino parent, std::string_view name,
                         const std::optional<BaseObject>& probe)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  struct NameIn {
    Ino parent;
    std::string_view name;
  };
  /// A name of a rename, and what it leads to.
  struct RenameEnd {
    Inode* directory = nullptr;
    std::string_view name;
    Inode* inode = nullptr;  ///< null: the name is free
  };
  struct RenameProbes {
    std::optional<BaseObject> from, to;
  };
  Status DoRename(const Caller& caller, Ino parent, std::string_view name,
                  Ino new_parent, std::string_view new_name, RenameMode mode);
  /// What rename(2) checks. Both names may lead to one inode: nothing to do.
  Status CheckRename(const RenameEnd& from, const RenameEnd& to,
                     RenameMode mode) REQUIRES_SHARED(gate_, tree_mutex_);
  Status JudgeRename(Plan& plan, const RenameEnd& from, const RenameEnd& to,
                     bool exchange) REQUIRES_SHARED(gate_, tree_mutex_);
  /// Returns the inode that lost the new name, with one lookup to forget; or
  /// kNoIno.
  Result<Ino> ApplyRename(Plan plan, NameIn old_name, NameIn new_name,
                          RenameMode mode, const RenameProbes& probes)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  bool IsMountpoint(const Inode& inode, const Inode& directory) const
      REQUIRES_SHARED(tree_mutex_);
  uint64_t DeviceOf(const Inode& file) const REQUIRES_SHARED(tree_mutex_);
  Result<bool> IsEmpty(const Inode& directory) REQUIRES_SHARED(tree_mutex_);
  /// What to leave at a name that goes away.
  static DentryValue Gone(const Inode& directory, std::string_view name,
                          const std::optional<BaseObject>& probe);
  /// What `child` is to the link count of `directory`. One that the base has
  /// lost, and only the transaction still has there, is not in it.
  static int Subdirectories(const Inode& directory, std::string_view name,
                            const Inode& child,
                            const std::optional<BaseObject>& probe);
  /// Takes away a name: what is noted of a file is a name that it still has.
  void DropName(Plan& plan, const Inode& directory, std::string_view name,
                const Inode& inode) const REQUIRES_SHARED(tree_mutex_);
  void CountMoved(Plan& plan, const Inode& directory, std::string_view name,
                  const Inode& inode) const REQUIRES_SHARED(tree_mutex_);
  Result<std::shared_ptr<const DirectorySnapshot>> Snapshot(Ino ino)
      REQUIRES_SHARED(gate_);
  /// As BaseDirectory::List; a directory that is gone has no entries.
  Result<std::vector<BaseEntry>> ListBase(const std::string& path) const;
  std::vector<DirEntry> Merge(const Inode& directory,
                              const std::vector<BaseEntry>& base) const
      REQUIRES_SHARED(tree_mutex_);

  // Journal.
  Plan StartPlan(Op op, const Caller& caller) const;
  /// Judges by limits, appends to the journal and applies.
  Result<Lsn> Accept(Change change, const StagedContent* content = nullptr)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// The same without a judgement.
  Result<Lsn> AppendAndApply(const Change& change, const StagedContent* content)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// As Accept, of what `plan` has, unless rules have questions about it.
  Result<Lsn> Accept(Plan&& plan) REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// As Accept, for an inode that may be an orphan: its changes are not
  /// journaled, for they end with the last process that has it open.
  Result<Lsn> AcceptFor(Inode& inode, Plan&& plan,
                        const StagedContent* content = nullptr)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Before something is removed, so that the tree is not locked while a limit
  /// finds out how much the base has.
  Status CountBaseAhead() REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  static void ReleaseAll(Journal& journal, const std::vector<Extent>& extents,
                         Lsn lsn);
  PolicyCheck Judging(Plan& plan) REQUIRES_SHARED(gate_, tree_mutex_) {
    return judge_.Check(tree_, plan);
  }
  /// Runs `work` as txfs::Answered does.
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
                   std::string_view new_name = {});

  // Pre-images.
  /// Of the base object under a name that the transaction took. After the
  /// change was accepted, so that a refused one leaves nothing.
  void KeepPreimage(const std::optional<BaseObject>& probe)
      EXCLUDES(tree_mutex_);
  /// Of the base file of `inode` whose content is about to change for the first
  /// time; to be kept after the change was accepted.
  static std::optional<BaseOrigin> PreimageOf(const Inode& inode);

  // Attributes.
  Result<struct stat> DoSetAttr(const Caller& caller, Ino ino,
                                const AttrRequest& request);
  /// `preimage`: the one to keep when this has succeeded.
  Result<struct stat> ApplyAttr(Plan plan, Ino ino, const AttrRequest& request,
                                std::optional<BaseOrigin>& preimage)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Sets the attribute, or removes it where there is no `value`; `op` says
  /// which it was called.
  Status ChangeXattr(Op op, const Caller& caller, Ino ino,
                     const std::string& name, std::optional<std::string> value,
                     XattrMode mode);
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
  /// Shows the ranges of `plan` that may have other bytes than zeros, in order.
  void VisitData(const ReadPlan& plan, const RangeVisitor& visit);
  Result<size_t> ReadPieces(const ReadPlan& plan, uint64_t offset,
                            MutableByteSpan out);
  Result<uint64_t> SizeOf(Ino ino);
  /// Judges a write before its content goes to the store, and says in `place`
  /// where an append goes. With the content lock of `ino` held.
  Result<WriteLook> LookBeforeWrite(Plan& plan, Ino ino, WritePlace& place,
                                    size_t size, bool append)
      REQUIRES_SHARED(gate_);
  Result<size_t> WriteRecord(const Caller& caller, Ino ino, WritePlace& place,
                             ByteSpan bytes, WriteMode mode);
  Status Stage(ByteSpan bytes, WriteLook& look) REQUIRES_SHARED(gate_);
  /// Applies a staged write, and moves `place` behind it. Returns the pre-image
  /// to keep.
  Result<std::optional<BaseOrigin>> ApplyWrite(Plan plan, Ino ino,
                                               WritePlace& place,
                                               const WriteLook& look,
                                               bool kill_privileges)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// EACCES: some content is to stay the base's, and the daemon may not read
  /// it.
  Status CheckReadable(Ino ino) EXCLUDES(tree_mutex_);
  Status AdoptRetired(Ino ino) REQUIRES_SHARED(gate_);
  Status DoAllocate(const Caller& caller, Ino ino, uint64_t offset,
                    uint64_t length, AllocateMode mode);
  /// As ApplyWrite.
  Result<std::optional<BaseOrigin>> ApplyAllocate(Plan plan, Ino ino,
                                                  Range range,
                                                  AllocateMode mode)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  void PlanTruncate(const Inode& inode, uint64_t size, Plan& plan,
                    std::vector<Extent>& released) REQUIRES_SHARED(tree_mutex_);

  const BaseDirectory base_;
  mutable Doubts doubts_;
  const FilesystemOptions options_;
  const uint64_t cookie_seed_;
  SharedMutex write_gate_;
  SharedMutex gate_;
  std::array<SharedMutex, 64> content_locks_;
  mutable SharedMutex tree_mutex_;
  Tree tree_ GUARDED_BY(tree_mutex_);
  Judge judge_ GUARDED_BY(gate_);  ///< its meters: of tree_mutex_
  std::shared_ptr<Journal> journal_ GUARDED_BY(gate_);
  bool halted_ GUARDED_BY(gate_) = false;
  OriginReader origins_;
  DirectoryCache directories_;
};

template <class T>
Result<T> OverlayFilesystem::Logged(Result<T> result, Op op,
                                    const Caller& caller, Ino parent,
                                    std::string_view name, Ino new_parent,
                                    std::string_view new_name) {
  if (!result) {
    LogRefusal(op, caller, parent, name, new_parent, new_name, result.error());
  }
  return result;
}

}  // namespace txfs

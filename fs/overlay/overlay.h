#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/base/base_file_cache.h"
#include "fs/origin/moved_files.h"
#include "fs/origin/overwritten.h"
#include "fs/origin/preimages.h"
#include "fs/origin/vault_files.h"
#include "fs/overlay/directory_cache.h"
#include "fs/overlay/doubts.h"
#include "fs/overlay/linked_names.h"
#include "fs/posix/filesystem.h"
#include "fs/tree/plan.h"
#include "fs/tree/tree.h"
#include "fs/veto/inquiry.h"
#include "fs/veto/limit_meters.h"
#include "fs/veto/policy_check.h"
#include "journal/journal.h"
#include "journal/support/mutex.h"

namespace txfs {

/// Filesystem over a base, a tree and a journal. Locks: docs/locking.md.
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

  /// Where pre-images go; none before this was called.
  void UsePreimages(std::shared_ptr<Preimages> preimages);
  /// Where files are that commits took out of the base, and what they overwrote
  /// in others. To be called before the first operation, if at all.
  void UseVaults(std::unique_ptr<VaultFiles> vaults,
                 std::unique_ptr<OverwrittenContent> overwritten);
  /// The transaction began at `time`.
  void BeginsAt(Timestamp time);
  /// `policy` judges every operation that begins after this has returned; null:
  /// all is allowed. Waits for those that go on.
  void UsePolicy(std::shared_ptr<const policy::Policy> policy);
  /// What they take on disk.
  uint64_t PreimageBytes();
  /// Marks this moment. Requires that no savepoint has the name.
  Result<Savepoint> MarkSavepoint(const Caller& caller,
                                  const std::string& name);

  /// The journal of the open transaction; stays usable after it ended.
  std::shared_ptr<Journal> journal();

  /// Reads a file of the base, as ReadFully.
  Result<size_t> ReadBase(const std::string& path, uint64_t offset,
                          MutableByteSpan out);
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

  /// All of the filesystem while nothing else can look at it or change it.
  struct Frozen {
    Tree& tree;
    const BaseDirectory& base;
    Journal& journal;
    OverlayFilesystem& filesystem;
    std::shared_ptr<Preimages>&
        preimages;  ///< of the open transaction; or null

    /// Reads content of an inode; Filesystem::Read would wait for the gate.
    Result<size_t> Read(const Inode& inode, uint64_t offset,
                        MutableByteSpan out);
    /// Where in `range` the file may have other bytes than zeros, in order.
    std::vector<Range> DataIn(const Inode& inode, Range range);
    /// The user.* attributes of a base object. ESTALE: it is not `ino`.
    Result<std::map<std::string, std::string>> BaseXattrs(
        const std::string& path, std::optional<uint64_t> ino = {}) const;
    /// Those that `inode`, of base origin and not changed in them, has of it.
    Result<std::map<std::string, std::string>> OldXattrs(
        const Inode& inode) const;
    /// What a base file had when it was first touched, if that is kept and not
    /// larger than a record may be.
    std::optional<Bytes> OldContent(const BaseOrigin& origin);
    /// Makes `content` all there is in a regular file, whose record becomes
    /// `after` but for size and times. Journaled, as a write by us, with the
    /// edits `along`.
    Status Rewrite(Inode& inode, InodeRecord after, ByteSpan content,
                   std::vector<Edit> along = {});
    /// By the clock that times of changes are of.
    [[nodiscard]] Timestamp Now() const;
    /// For those who outlive the freeze.
    [[nodiscard]] std::shared_ptr<Journal> SharedJournal() const;
    /// The one in force; or null.
    [[nodiscard]] std::shared_ptr<const policy::Policy> SharedPolicy() const;
    /// While the base or the store may be half-way between two states,
    /// mutations are refused; Adopt ends it.
    void SetHalted(bool halted);
    /// Back to how all was at `savepoint`, at once and in the journal, too.
    /// Returns what is stale; `*undone` is the number of changes. Drain the
    /// journal when nothing is frozen any more: it frees what is not needed.
    Result<StaleCaches> Rollback(const Caller& caller,
                                 const Savepoint& savepoint, uint64_t* undone);
    /// The kernel may remember that names lead to what they led to.
    void AddRebased(Tree::Rebased rebased, StaleCaches& stale) const;
    /// Those of `inos` that are directories which the overlay shows.
    void AddMoved(std::span<const Ino> inos, StaleCaches& stale) const;
    /// Before commit moves base objects: keeps open what orphans still read.
    Status PinOrphans();
    struct ChangedInodes {
      StaleCaches known;    ///< of which the kernel has the attributes
      StaleCaches unknown;  ///< of which it will ask when somebody wants them
    };
    /// Inodes that the transaction changed and the kernel holds. A discard
    /// makes them stale, and the kernel may be told of it meanwhile: what it
    /// asks then is answered afterwards.
    [[nodiscard]] ChangedInodes Changed() const;
    /// The transaction is over, or shown as if it were: inodes the kernel
    /// holds become pristine where the base has them (`committed`: at their
    /// overlay path, else at their base path), orphans where it has not. No
    /// mutation may come before Adopt or Restore. Returns what is stale; unless
    /// it is `committed`, what Changed says besides. Shows `visit`, if there is
    /// one, every inode first; by then those that are where the base has them
    /// may be pristine already, no others.
    StaleCaches Reset(bool committed,
                      const std::function<void(const Inode&)>& visit = {});
    /// `next` is the journal of the transaction that begins. Swaps the old one
    /// into it: that must live for as long as an orphan needs it, and is better
    /// closed when nothing is frozen any more.
    void Adopt(std::shared_ptr<Journal>& next);
    /// After a Reset, the transaction is not over after all: everything is
    /// again as its journal has it. Returns what is stale.
    Result<StaleCaches> Restore();
    /// Says in `change` who makes it, and when.
    void Sign(const Caller& caller, Change& change) const;
    /// A part of the transaction is over: `change`, planned by PlanSettlement
    /// and settled by the journal, is taken out of the tree; a commit has
    /// brought it to the base. `tables`: all that the journal had before.
    /// Returns what is stale.
    StaleCaches Settle(const Change& change, Image tables);
    /// Drops descriptors of base directories: others may be there by now.
    void ForgetDirectories() const;
    /// The base has changed: files that are not where they were are to be
    /// looked for again.
    void ExpectMoved() const;
    /// What the transaction did nothing to becomes what the base has by now:
    /// names of changed files (LookForChanged), files that it touched and left
    /// as they were, mode and owner of directories, directories that are gone.
    /// Journaled, also where a query is what asks for it. Returns what is
    /// stale.
    StaleCaches FollowBase();
    /// Somebody else changed the base: looks again at everything that is known
    /// of it, FollowBase included. What the transaction changed stays as it is,
    /// pristine inodes become what the base has at their path, or orphans where
    /// it has nothing of their kind. Returns what is stale.
    StaleCaches Refresh();
    /// The same for `inos` only. What the base has there is taken to be what
    /// they were made from, as long as nobody looks. Requires that descriptors
    /// of directories were forgotten lately.
    StaleCaches Refresh(std::span<const Ino> inos);
    /// The same, and upper directories among them have the mode and owner that
    /// only others changed.
    StaleCaches LookAgain(std::span<const Ino> inos);

   private:
    [[nodiscard]] Tree::Look BaseLook() const;
    void DropCaches() const;
    [[nodiscard]] bool IsHalted() const;
    /// The two parts of FollowBase.
    StaleCaches FollowNames(const std::vector<Inode*>& changed);
    StaleCaches FollowTouched(const std::vector<Inode*>& all);
    /// The same for some: upper inodes.
    StaleCaches FollowBase(const std::vector<Inode*>& changed);
    StaleCaches DropLostDirectories();
    StaleCaches Delete(const LookedFor::Gone& gone);
    /// Journals that `inode`, of the record `before`, is `after` now, and what
    /// came of its names.
    Status Follow(Inode& inode, InodeRecord before,
                  std::optional<InodeRecord> after,
                  std::vector<Edit> names = {});
    Status MakePristine(Inode& inode);
    /// The tree is another one than operations made it.
    void ForgetMeters() const;
  };

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
    Frozen frozen{tree_, base_, *journal_, *this, preimages_};
    return work(frozen);
  }

 private:
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
    Ino ino = kNoIno;
    std::vector<Piece> pieces;
    std::string base_path;
    std::vector<std::string> other_paths;  ///< where the base may have it, too
    Fingerprint state;  ///< of the base file, when it was noted
    Told told;
    bool guarded = false;     ///< what is read must be what was told of
    bool must_match = false;  ///< base_path must lead to the same object
    bool changed = false;     ///< it is to be what it was when it was noted
    bool may_follow = false;  ///< as OverwrittenContent::Noted
    SharedFd pinned;
    std::shared_ptr<Journal> journal;
    std::shared_ptr<Preimages> preimages;
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
  /// MakeEntry, asking and logged.
  Result<Node> MakeAnswered(Op op, const Caller& caller, Ino parent,
                            std::string_view name, const InodeRecord& record);
  Status RemoveEntry(Op op, const Caller& caller, Ino parent,
                     std::string_view name);
  Status RemoveAnswered(Op op, const Caller& caller, Ino parent,
                        std::string_view name);
  Result<Node> DoLink(const Caller& caller, Ino ino, Ino parent,
                      std::string_view name);
  Status DoRename(const Caller& caller, Ino parent, std::string_view name,
                  Ino new_parent, std::string_view new_name, RenameMode mode);
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
  /// Fails when `inquiry`, if there is one, has questions about `change`.
  Status CheckAnswered(Inquiry* inquiry, Change& change) REQUIRES_SHARED(gate_)
      REQUIRES(tree_mutex_);
  /// As Accept, for an inode that may be an orphan: its changes are not
  /// journaled, for they end with the last process that has it open.
  Result<Lsn> AcceptFor(Inode& inode, Plan&& plan,
                        const StagedContent* content = nullptr)
      REQUIRES_SHARED(gate_) REQUIRES(tree_mutex_);
  /// Before something is removed, so that the tree is not locked while a limit
  /// finds out how much the base has.
  Status CountBaseAhead() REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  void ReleaseAll(Journal& journal, const std::vector<Extent>& extents,
                  Lsn lsn);
  /// Judges what `plan` is to do; its caller and op are known.
  PolicyCheck Judging(Plan& plan) REQUIRES_SHARED(gate_, tree_mutex_);
  /// Runs `work`, which does an operation for the caller that it is given;
  /// again, each time that all the questions which it met were answered with
  /// yes. Waits for answers, with no lock held.
  template <class Work>
  std::invoke_result_t<Work, const Caller&> Answered(const Caller& caller,
                                                     const Work& work);
  Status Ask(const Caller& caller, const Inquiry& inquiry);
  /// Records a refused operation in the log.
  void LogRefusal(Op op, const Caller& caller, Ino parent,
                  std::string_view name, Ino new_parent,
                  std::string_view new_name, const Error& error);
  template <class T>
  Result<T> Logged(Result<T> result, Op op, const Caller& caller, Ino parent,
                   std::string_view name, Ino new_parent = kNoIno,
                   std::string_view new_name = {});

  // Pre-images. overlay_preimages.cc
  /// Of a base file that is in the state `st`.
  Fingerprint FingerprintOf(const std::string& path, const struct stat& st)
      EXCLUDES(tree_mutex_);
  /// Fails (EACCES) where some content is to stay the base's that we may not
  /// read, and no commit could keep. Before content changes, with its lock.
  Status CheckReadable(Ino ino) REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Before the content of a file changes. Requires its content lock.
  void KeepPreimage(Ino ino) REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);
  /// Before something else takes the name of a base file.
  void KeepPreimage(const std::optional<BaseObject>& probe)
      REQUIRES_SHARED(gate_) EXCLUDES(tree_mutex_);

  // Attributes.
  Result<struct stat> DoSetAttr(const Caller& caller, Ino ino,
                                const AttrRequest& request);
  /// Sets the attribute, or removes it where there is no `value`; `op` says
  /// which it was called.
  Status ChangeXattr(Op op, const Caller& caller, Ino ino,
                     const std::string& name, std::optional<std::string> value,
                     XattrMode mode);
  /// Where the user.* attributes are that an inode has of the base.
  struct XattrSource {
    std::string path;                  ///< in the base
    std::optional<Fingerprint> state;  ///< the file must be this one, wherever
                                       ///< it is by now
    Ino ino = kNoIno;
    bool upper = false;
    std::optional<Told> told;  ///< it must be what the kernel was told of
  };
  Result<XattrSource> SourceOfXattrs(const Inode& inode) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  /// The object, wherever it is.
  Result<SharedFd> OpenSource(const XattrSource& source);
  /// The file, if it is not at its path any more. ENOENT: nor anywhere else.
  Result<SharedFd> OpenMoved(const XattrSource& source);
  Result<std::vector<std::string>> ListXattrsOf(const XattrSource& source);
  Result<std::string> GetXattrOf(const XattrSource& source,
                                 const std::string& name);
  Result<std::map<std::string, std::string>> XattrsOf(
      const XattrSource& source);
  /// All user.* attributes of the base object, which must be `ino` if that is
  /// said; what is gone has none.
  Result<std::map<std::string, std::string>> BaseXattrs(
      const std::string& path, std::optional<uint64_t> ino = {}) const;
  Result<std::map<std::string, std::string>> VisibleXattrs(Ino ino)
      REQUIRES_SHARED(gate_);

  // Content.
  SharedMutex& ContentLock(Ino ino) {
    return content_locks_[Raw(ino) % content_locks_.size()];
  }
  ReadPlan PlanRead(const Inode& inode, uint64_t offset, uint64_t length) const
      REQUIRES_SHARED(gate_, tree_mutex_);
  /// The base file, where others have put it meanwhile, too.
  Result<SharedFd> OpenBase(const ReadPlan& plan);
  /// One that is not by its name what it was when it was noted: in a vault, or
  /// by another name; or nullptr.
  SharedFd FindElsewhere(const Fingerprint& state, const std::string& path);
  /// Of a base file that is not in the state in which it was noted: what it
  /// was.
  struct OldState {
    struct stat seen{};  ///< what the file was when this was looked for
    std::optional<Bytes> preimage;
    OverwrittenContent::Patches patches;

    [[nodiscard]] bool exists() const { return preimage || !patches.empty(); }
  };
  /// That of the open base file `fd`, which was read before. Looks again only
  /// if the file has changed since `old` was found.
  Status FindOldState(const ReadPlan& plan, int fd, OldState& old) const;
  /// Bytes of the base file as it was when it was noted, as far as that is
  /// kept. `old`: of an earlier call for `plan`, if there was one.
  Status ReadOrigin(const ReadPlan& plan, OldState& old, uint64_t offset,
                    MutableByteSpan out);
  /// The same, while nobody else writes to it. EAGAIN: somebody did.
  Status TryReadOrigin(const ReadPlan& plan, int fd, OldState& old,
                       uint64_t offset, MutableByteSpan out) const;
  /// Takes a range that may have other bytes than zeros; returns whether to go
  /// on.
  using RangeVisitor = std::function<bool(Range)>;
  /// Shows those of `plan`, in order.
  void VisitData(const ReadPlan& plan, const RangeVisitor& visit);
  /// Shows the parts of a range of the base file that are no holes of it.
  bool VisitBaseData(const ReadPlan& plan, Range range,
                     const RangeVisitor& visit);
  Result<size_t> ReadPieces(const ReadPlan& plan, uint64_t offset,
                            MutableByteSpan out);
  /// Where a write goes. `asked` for is another place than `at` only where the
  /// kernel is mistaken about the end that it appends to.
  struct WritePlace {
    uint64_t asked, at;
  };
  Result<uint64_t> SizeOf(Ino ino);
  Status JudgeWrite(Plan& plan, Ino ino) REQUIRES_SHARED(gate_);
  /// Moves `place` behind what it wrote.
  Result<size_t> WriteRecord(const Caller& caller, Ino ino, WritePlace& place,
                             ByteSpan bytes, WriteMode mode);
  /// Says in `place` where an append goes. With the content lock of `ino` held.
  Result<StagedContent> StageFor(Ino ino, WritePlace& place, ByteSpan bytes,
                                 bool append, uint32_t* segment)
      REQUIRES_SHARED(gate_);
  Status AdoptRetired(Ino ino) REQUIRES_SHARED(gate_);
  Status DoAllocate(const Caller& caller, Ino ino, uint64_t offset,
                    uint64_t length, AllocateMode mode);
  void PlanTruncate(const Inode& inode, uint64_t size, Plan& plan,
                    std::vector<Extent>& released) REQUIRES_SHARED(tree_mutex_);

  const BaseDirectory base_;
  mutable Doubts doubts_;
  BaseLinks links_;
  const FilesystemOptions options_;
  std::shared_ptr<const policy::Policy> policy_ GUARDED_BY(gate_);
  const uint64_t cookie_seed_;
  SharedMutex write_gate_;
  SharedMutex gate_;
  std::array<SharedMutex, 64> content_locks_;
  mutable SharedMutex tree_mutex_;
  Tree tree_ GUARDED_BY(tree_mutex_);
  LimitMeters meters_ GUARDED_BY(tree_mutex_);
  std::shared_ptr<Journal> journal_ GUARDED_BY(gate_);
  std::shared_ptr<Preimages> preimages_ GUARDED_BY(gate_);
  std::unique_ptr<VaultFiles> vaults_;
  std::unique_ptr<OverwrittenContent> overwritten_;
  MovedFiles moved_;
  bool halted_ GUARDED_BY(gate_) = false;
  BaseFileCache files_;
  DirectoryCache directories_;
};

template <class Work>
std::invoke_result_t<Work, const Caller&> OverlayFilesystem::Answered(
    const Caller& caller, const Work& work) {
  Inquiry inquiry;
  Caller asking = caller;
  asking.inquiry = &inquiry;
  for (;;) {
    auto result = work(asking);
    if (result || !inquiry.due()) return result;
    if (Status answer = Ask(caller, inquiry); !answer) {
      return std::unexpected(std::move(answer).error());
    }
    inquiry.Grant();
  }
}

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

#include "fs/overlay/frozen.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "fs/overlay/base_follower.h"
#include "fs/overlay/handover.h"
#include "fs/overlay/overlay.h"
#include "fs/posix/path_event.h"
#include "fs/tree/plan.h"

namespace txfs {

Result<size_t> Frozen::Read(const Inode& inode, uint64_t offset,
                            MutableByteSpan out) {
  overlay_.AssertFrozen();
  auto plan = overlay_.PlanRead(inode, offset, out.size());
  if (!plan.journal) plan.journal = overlay_.journal_;
  return overlay_.ReadPieces(plan, offset, out);
}

std::vector<Range> Frozen::DataIn(const Inode& inode, Range range) {
  overlay_.AssertFrozen();
  std::vector<Range> data;
  const auto plan = overlay_.PlanRead(inode, range.from, range.to - range.from);
  overlay_.VisitData(plan, [&](Range found) {
    data.push_back(found);
    return true;
  });
  return data;
}

Result<std::map<std::string, std::string>> Frozen::OldXattrs(
    const Inode& inode) const {
  overlay_.AssertFrozen();
  OriginXattrs source = TRY(overlay_.SourceOfXattrs(inode));
  source.told.reset();  // the reply goes only to the user of the daemon
  return origins.Xattrs(source);
}

Result<SharedFd> Frozen::OpenOrigin(const Inode& inode) {
  overlay_.AssertFrozen();
  return origins.Open(overlay_.PlanRead(inode, 0, 0).origin);
}

Status Frozen::Rewrite(Inode& inode, InodeRecord after, ByteSpan content,
                       std::vector<Edit> along) {
  const Timestamp now = Now();
  Attr& attr = after.attr;
  attr.size = content.size();
  attr.base_limit = 0;
  attr.own_segment = 0;
  attr.mtime = attr.ctime = now;
  Change change{.op = Op::kWrite,
                .time = now,
                .pid = static_cast<uint32_t>(::getpid()),
                .uid = ::geteuid(),
                .exe = "txfs",
                .path = tree.PathOf(inode),
                .length = content.size(),
                .edits = std::move(along)};
  StagedContent staged;
  std::vector<Extent> fresh;
  if (!content.empty()) {
    staged = TRY(journal.Stage(content));
    fresh.push_back({0, content.size(), staged.ref});
  }
  ExtentEdit extents = PlanExtents(inode, 0, UINT64_MAX, fresh);
  const std::vector<Extent> released = ReleasedBy(extents, 0, UINT64_MAX);
  change.edits.push_back(InodeEdit{inode.ino, inode.record, std::move(after)});
  change.edits.push_back(std::move(extents));
  overlay_.AssertFrozen();
  auto accepted =
      overlay_.AppendAndApply(change, fresh.empty() ? nullptr : &staged);
  ForgetMeters();
  if (!accepted) {
    if (!fresh.empty()) journal.Abandon(staged);
    return std::unexpected(std::move(accepted).error());
  }
  Release(released, *accepted);
  return {};
}

void Frozen::Follow(Change change) {
  overlay_.AssertFrozen();
  overlay_.ApplyToTree(change);
  overlay_.followed_.push_back(std::move(change));
}

Status Frozen::JournalFollowed() {
  overlay_.AssertFrozen();
  return overlay_.JournalFollowed();
}

void Frozen::ForgetFollowed() {
  overlay_.AssertFrozen();
  overlay_.followed_.clear();
}

void Frozen::Release(const std::vector<Extent>& extents, Lsn lsn) {
  ReleaseAll(journal, extents, lsn);
}

void Frozen::Sign(const Caller& caller, Change& change) const {
  change.time = Now();
  change.pid = caller.pid;
  change.uid = caller.uid;
  change.exe = overlay_.options_.exe_of(caller.pid);
}

Timestamp Frozen::Now() const { return overlay_.options_.clock->Now(); }

void Frozen::SetHalted(bool halted) {
  overlay_.AssertFrozen();
  overlay_.halted_ = halted;
}

Frozen::~Frozen() {
  overlay_.AssertFrozen();
  overlay_.promised_space_.Restore(*overlay_.journal_);
}

bool Frozen::IsComplete(const TouchedInodes& touched) const {
  overlay_.AssertFrozen();
  return overlay_.touch_watches_.IsComplete(touched);
}

void Frozen::LeaveTree() const {
  overlay_.AssertFrozen();
  overlay_.touch_watches_.ForgetFreeze();
}

bool Frozen::IsHalted() const {
  overlay_.AssertFrozen();
  return overlay_.halted_;
}

std::shared_ptr<Journal> Frozen::SharedJournal() const {
  overlay_.AssertFrozen();
  return overlay_.journal_;
}

void Frozen::SwapJournal(std::shared_ptr<Journal>& next) {
  overlay_.AssertFrozen();
  std::swap(overlay_.journal_, next);
  overlay_.promised_space_.JournalEnded();
  overlay_.followed_.clear();
  overlay_.halted_ = false;
}

std::shared_ptr<const policy::Policy> Frozen::SharedPolicy() const {
  overlay_.AssertFrozen();
  return overlay_.judge_.policy();
}

Result<StaleCaches> Frozen::Rollback(const Caller& caller,
                                     const Savepoint& savepoint,
                                     uint64_t* undone) {
  TRY(JournalFollowed());
  Plan plan = overlay_.StartPlan(Op::kRollback, caller);
  plan.change().path = savepoint.name;
  plan.change().offset = Raw(savepoint.lsn);
  Rewind rewind = TRY(journal.Rollback(std::move(plan).Finish()));
  *undone = rewind.changes;
  return GoBack(rewind, [&](const Tree::WentBack& went) {
    for (const Extent& extent : went.kept) rewind.CountLive(extent, 1);
    for (const Extent& extent : went.given_up) rewind.CountLive(extent, -1);
    journal.SettleRewind(rewind);
  });
}

Result<Savepoint> Frozen::Mark(const Caller& caller, const std::string& name,
                               const std::string& call) {
  Change change{.op = Op::kSavepoint, .path = name, .new_path = call};
  Sign(caller, change);
  const Lsn lsn = TRY(journal.Append(change));
  return Savepoint{name, lsn, change.time};
}

namespace {

/// By how many bytes more, or fewer, of a record of content are in use.
struct ContentUse {
  ContentRef ref;
  int64_t bytes = 0;
};
using ContentUses = std::map<Rewind::Place, ContentUse>;

void CountUse(const Extent& extent, int64_t sign, ContentUses& uses) {
  const ContentRef& ref = extent.content;
  if (ref.segment == 0) return;
  ContentUse& use = uses[{ref.segment, ref.record_position}];
  use.ref = ref;
  use.bytes += sign * static_cast<int64_t>(extent.length);
}

ContentUses UsesChangedBy(const Change& change) {
  ContentUses uses;
  for (const Edit& edit : change.edits) {
    const auto* extents = std::get_if<ExtentEdit>(&edit);
    if (extents == nullptr) continue;
    for (const Extent& extent : extents->before) CountUse(extent, -1, uses);
    for (const Extent& extent : extents->after) CountUse(extent, 1, uses);
  }
  return uses;
}

}  // namespace

Result<StaleCaches> Frozen::Revert(const Change& change, const Rewind& rewind) {
  const Lsn lsn = TRY(journal.Append(change));
  return GoBack(rewind, [&](const Tree::WentBack& went) {
    ContentUses uses = UsesChangedBy(change);
    for (const Extent& extent : went.kept) CountUse(extent, 1, uses);
    for (const Extent& extent : went.given_up) CountUse(extent, -1, uses);
    Rewind returned;
    for (const auto& [place, use] : uses) {
      if (use.bytes <= 0) continue;
      returned.content[place] = {.length = use.ref.record_length,
                                 .live = use.bytes};
    }
    journal.SettleRewind(returned);
    for (const auto& [place, use] : uses) {
      if (use.bytes >= 0) continue;
      const auto length = static_cast<uint64_t>(-use.bytes);
      journal.Release({.offset = 0, .length = length, .content = use.ref}, lsn);
    }
  });
}

Result<StaleCaches> Frozen::GoBack(
    const Rewind& rewind,
    const std::function<void(const Tree::WentBack&)>& settle) {
  StaleCaches stale;
  for (const auto& [key, value] : rewind.dentries) {
    if (stale.watched.size() > kMostPathEvents) break;
    WatchName(key.first, key.second, stale);
  }
  const Tree::WentBack went = tree.GoBack(rewind);
  ForgetMeters();
  const Tree::Look look = BaseLook();
  for (Inode* inode : went.changed) {
    if (Inode::Own* own = inode->own.get()) own->reserved.reset();
    if (!inode->upper) continue;
    tree.Relink(*inode, look);
    // A changed file is shown at its path even if the base has another file
    // there.
    if (!tree.IsShadowed(*inode) || inode->IsUnchanged()) continue;
    const std::string& path = inode->record.base->path;
    Inode* parent = tree.FindBaseDirectory(ParentPath(path));
    const std::string name(BaseName(path));
    Inode* theirs = parent->CachedChild(name);
    if (theirs->upper || theirs->IsDirectory()) continue;
    const Ino ino = theirs->ino;
    const SharedFd open =
        origins.files().Find(ino, BaseIdentity::Of(*theirs->record.base));
    tree.DropCached(*parent, name);
    tree.Relink(*inode, look);
    stale.names.push_back({parent->ino, name});
    theirs = tree.Find(ino);
    if (theirs == nullptr || !theirs->IsOrphan()) continue;
    // As with a file that another program deleted: open descriptors read on.
    theirs->orphan.Make().taken = true;
    theirs->orphan.Make().pinned_base = open;
    stale.inodes.push_back(ino);
  }
  settle(went);
  for (const Ino ino : went.gone) origins.files().Drop(ino);
  overlay_.directories_.Clear();
  ForgetMoves();

  for (const Inode* inode : went.changed) {
    if (inode->lookups > 0) stale.inodes.push_back(inode->ino);
  }
  std::vector<Ino> moved;
  for (const auto& [key, value] : rewind.dentries) {
    const Inode* parent = tree.Find(key.first);
    if (parent == nullptr || parent->lookups == 0) continue;
    stale.names.push_back({key.first, key.second});
    const Inode* child = tree.FindChild(*parent, key.second);
    if (child != nullptr) moved.push_back(child->ino);
  }
  AddMoved(tree, moved, stale);
  // `went.changed` may have many pristine inodes, which need no update.
  std::vector<Inode*> upper;
  std::ranges::copy_if(went.changed, std::back_inserter(upper), &Inode::upper);
  stale.Append(BaseFollower(*this).Follow(upper));
  KeepDeleted(tree, stale);
  return stale;
}

void Frozen::WatchName(Ino parent, const std::string& name,
                       StaleCaches& stale) const {
  const Inode* directory = tree.Find(parent);
  if (directory == nullptr || directory->lookups == 0) return;
  const Inode* inode = tree.FindChild(*directory, name);
  StaleCaches::Watched watched{.parent = parent, .name = name};
  watched.was_there = inode != nullptr;
  if (inode != nullptr) watched.was = inode->ino;
  watched.was_directory = inode != nullptr && inode->IsDirectory();
  const bool asks = directory->UpperSlot(name) == nullptr && inode == nullptr;
  if (asks && directory->record.base) {
    const auto st = base.Stat(JoinPath(directory->record.base->path, name));
    watched.was_there = st.has_value();
    watched.was_directory = st && S_ISDIR(st->st_mode);
  }
  stale.watched.push_back(std::move(watched));
}

Tree::Look Frozen::BaseLook() const { return LookAt(base); }

void Frozen::ForgetDirectories() const {
  overlay_.AssertFrozen();
  base.DropCache();
  overlay_.directories_.Clear();
  overlay_.judge_.ForgetBase();
  origins.moved().Forget();
}

void Frozen::DropCaches() const {
  ForgetDirectories();
  origins.files().Clear();
}

void Frozen::ForgetMeters() const {
  overlay_.AssertFrozen();
  overlay_.judge_.ForgetTree();
}

void Frozen::ForgetMoves() const {
  overlay_.AssertFrozen();
  overlay_.judge_.ForgetMoves();
}

void Frozen::ExpectMoved() const {
  origins.moved().Expect(FilesReadFrom(tree));
}

}  // namespace txfs

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fs/overlay/overlay.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// Whether the file still has the base's content, so that what is in the base
/// is worth keeping before that changes.
bool IsStillTheBases(const Inode& inode) {
  return inode.record.base && !inode.IsOrphan() && !inode.pinned_base &&
         inode.attr().type == FileType::kRegular && !inode.ContentChanged() &&
         inode.record.base->size <= Preimages::kMaxSize;
}

/// Whether content is about to change for the first time of which some is to
/// stay the base's.
bool KeepsContent(const Inode& inode) {
  return inode.record.base && !inode.IsOrphan() && !inode.pinned_base &&
         inode.attr().type == FileType::kRegular &&
         inode.attr().base_limit > 0 && !inode.ContentChanged();
}

/// So often a file is read that somebody writes to meanwhile.
constexpr int kReadTries = 5;

/// Whether nobody wrote to a file between the two.
bool AreSame(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size &&
         Timestamp::From(a.st_mtim) == Timestamp::From(b.st_mtim) &&
         Timestamp::From(a.st_ctim) == Timestamp::From(b.st_ctim);
}

/// Whether `content` is there and has what is wanted of it.
bool CopyFrom(const std::optional<Bytes>& content, uint64_t offset,
              MutableByteSpan out) {
  if (!content || content->size() < offset + out.size()) return false;
  std::ranges::copy(ByteSpan(*content).subspan(offset, out.size()),
                    out.begin());
  return true;
}

}  // namespace

void OverlayFilesystem::UsePreimages(std::shared_ptr<Preimages> preimages) {
  const WriterLock gate(gate_);
  preimages_ = std::move(preimages);
}

void OverlayFilesystem::UseVaults(
    std::unique_ptr<VaultFiles> vaults,
    std::unique_ptr<OverwrittenContent> overwritten) {
  vaults_ = std::move(vaults);
  overwritten_ = std::move(overwritten);
}

void OverlayFilesystem::BeginsAt(Timestamp time) {
  if (overwritten_) overwritten_->Begin(time);
}

uint64_t OverlayFilesystem::PreimageBytes() {
  const ReaderLock gate(gate_);
  return preimages_ ? preimages_->bytes() : 0;
}

Fingerprint OverlayFilesystem::FingerprintOf(const std::string& path,
                                             const struct stat& st) {
  const ReaderLock lock(tree_mutex_);
  return Fingerprint::Of(tree_.OriginOf(path, st));
}

void OverlayFilesystem::KeepPreimage(Ino ino) {
  if (!preimages_) return;
  BaseOrigin origin;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !IsStillTheBases(*inode)) return;
    origin = *inode->record.base;
  }
  const Fingerprint state = Fingerprint::Of(origin);
  if (!preimages_->Wants(state)) return;
  const auto fd = files_.Get(ino, origin.path, BaseIdentity::Of(origin),
                             BaseFileCache::OnOther::kFail);
  if (fd) {
    preimages_->Save(state, (*fd)->get());
  }
}

void OverlayFilesystem::KeepPreimage(const std::optional<BaseObject>& probe) {
  if (!preimages_ || !probe || !S_ISREG(probe->st.st_mode)) return;
  const Fingerprint state = FingerprintOf(probe->path, probe->st);
  if (!preimages_->Wants(state)) return;
  if (const auto fd = base_.OpenFile(probe->path)) {
    preimages_->Save(state, (*fd)->get());
  }
}

Status OverlayFilesystem::CheckReadable(Ino ino) {
  static const uid_t kUser = ::geteuid();
  if (kUser == 0) return {};
  BaseOrigin origin;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !KeepsContent(*inode)) return {};
    origin = *inode->record.base;
    const bool is_readable =
        origin.uid == kUser && (origin.mode & S_IRUSR) != 0;
    if (is_readable) return {};
  }
  const auto fd = files_.Get(ino, origin.path, BaseIdentity::Of(origin),
                             BaseFileCache::OnOther::kAccept);
  if (!fd && fd.error().code == EACCES) return std::unexpected(fd.error());
  return {};
}

// --- reading ---------------------------------------------------------------

Status OverlayFilesystem::FindOldState(const ReadPlan& plan, int fd,
                                       OldState& old) const {
  struct stat st{};
  if (!plan.changed) return {};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat " + plan.base_path);
  if (IsUnchanged(st, plan.state)) return {};
  if (AreSame(st, old.seen)) return {};
  old = {.seen = st, .preimage = {}, .patches = {}};
  if (plan.preimages) old.preimage = plan.preimages->Find(plan.state);
  if (old.preimage || !overwritten_) return {};
  const OverwrittenContent::Noted noted{plan.state, plan.may_follow};
  old.patches = TRY(overwritten_->Find(noted, plan.base_path, st)).patches;
  return {};
}

Status OverlayFilesystem::ReadOrigin(const ReadPlan& plan, OldState& old,
                                     uint64_t offset, MutableByteSpan out) {
  const auto fd = OpenBase(plan);
  if (!fd && fd.error().code == ESTALE && plan.preimages) {
    old.preimage = plan.preimages->Find(plan.state);
    if (CopyFrom(old.preimage, offset, out)) return {};
  }
  if (!fd) return std::unexpected(fd.error());
  for (int tries = 0; tries < kReadTries; ++tries) {
    if (tries > 0) old = {};
    auto done = TryReadOrigin(plan, (*fd)->get(), old, offset, out);
    if (done || done.error().code != EAGAIN) return done;
  }
  // Who goes on and on is no commit.
  if (old.patches.empty()) return {};
  auto restored = overwritten_->Restore(old.patches, offset, out);
  if (!restored && restored.error().code == ENOENT) restored.error().code = EIO;
  return restored;
}

Status OverlayFilesystem::TryReadOrigin(const ReadPlan& plan, int fd,
                                        OldState& old, uint64_t offset,
                                        MutableByteSpan out) const {
  struct stat before{};
  struct stat after{};
  if (::fstat(fd, &before) != 0) return Fail(errno, "stat " + plan.base_path);
  if (plan.guarded) TRY(CheckTold(plan.ino, plan.told, before));
  const size_t n = TRY(ReadFully(fd, offset, out));
  // Somebody cut the base file short behind our back.
  std::ranges::fill(out.subspan(n), std::byte{0});
  // Looked for afterwards, whatever was written before it was read is found.
  TRY(FindOldState(plan, fd, old));
  if (CopyFrom(old.preimage, offset, out)) return {};
  if (!plan.changed) return {};
  // What was found is not what was read, if it has changed meanwhile.
  if (::fstat(fd, &after) != 0) return Fail(errno, "stat " + plan.base_path);
  if (!AreSame(before, after)) return Fail(EAGAIN, "read " + plan.base_path);
  if (old.patches.empty()) return {};
  auto restored = overwritten_->Restore(old.patches, offset, out);
  if (restored || restored.error().code != ENOENT) return restored;
  // Its history has been given up meanwhile.
  return Fail(EAGAIN, "read " + plan.base_path);
}

std::optional<Bytes> OverlayFilesystem::Frozen::OldContent(
    const BaseOrigin& origin) {
  const Fingerprint state = Fingerprint::Of(origin);
  std::optional<Bytes> old;
  if (preimages) old = preimages->Find(state);
  if (old || origin.size > kRecordContentMax) return old;
  SharedFd kept =
      filesystem.vaults_ ? filesystem.vaults_->Find(state) : nullptr;
  // Of many files that were written anew each would be looked for by itself.
  if (!kept) kept = filesystem.moved_.FindExpected(state, origin.path);
  const bool is_elsewhere = kept != nullptr;
  if (!kept) kept = base.OpenFile(origin.path).value_or(nullptr);
  if (!kept || !IsSameFile(base, kept->get(), state)) return old;
  Bytes content(origin.size);
  struct stat st{};
  const auto n = ReadFully(kept->get(), 0, content);
  if (!n || ::fstat(kept->get(), &st) != 0 || !filesystem.overwritten_) {
    return old;
  }
  const auto since =
      filesystem.overwritten_->Find({.state = state}, origin.path, st);
  if (!since) return old;
  // What somebody else wrote, nobody can take away.
  if (since->exact) {
    const bool restored =
        filesystem.overwritten_->Restore(since->patches, 0, content)
            .has_value();
    if (!restored) return old;
    return content;
  }
  // To move a file, and to give it a name or take one, changes its ctime.
  const bool is_it = since->patches.empty() && is_elsewhere &&
                     *n == content.size() &&
                     IsInState(base, kept->get(), state);
  if (!is_it) return old;
  return content;
}

// --- content that a merge made ---------------------------------------------

Timestamp OverlayFilesystem::Frozen::Now() const {
  return filesystem.options_.clock->Now();
}

Status OverlayFilesystem::Frozen::Rewrite(Inode& inode, InodeRecord after,
                                          ByteSpan content,
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
  return [&]() NO_THREAD_SAFETY_ANALYSIS -> Status {  // held by WhileFrozen
    auto accepted =
        filesystem.AppendAndApply(change, fresh.empty() ? nullptr : &staged);
    filesystem.meters_.ForgetTree();
    if (!accepted) {
      if (!fresh.empty()) journal.Abandon(staged);
      return std::unexpected(std::move(accepted).error());
    }
    filesystem.ReleaseAll(journal, released, *accepted);
    return {};
  }();
}

}  // namespace txfs

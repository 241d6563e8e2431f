#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "fs/overlay.h"
#include "journal/base/file.h"

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

void OverlayFilesystem::FindBefore(const ReadPlan& plan, int fd,
                                   Before& before) const {
  struct stat st{};
  const bool is_other = plan.changed && ::fstat(fd, &st) == 0 &&
                        (static_cast<uint64_t>(st.st_size) != plan.state.size ||
                         Timestamp::From(st.st_mtim) != plan.state.mtime ||
                         Timestamp::From(st.st_ctim) != plan.state.ctime);
  if (!is_other || before.looked_for) return;
  before.looked_for = true;
  if (plan.preimages) before.preimage = plan.preimages->Find(plan.state);
  if (before.preimage || !overwritten_) return;
  before.patches = overwritten_->Since(plan.state, plan.base_path);
}

Status OverlayFilesystem::ReadOrigin(const ReadPlan& plan, Before& before,
                                     uint64_t offset, MutableByteSpan out) {
  const auto fd = OpenBase(plan);
  if (fd) {
    const size_t n = TRY(ReadFully((*fd)->get(), offset, out));
    // Somebody cut the base file short behind our back.
    std::ranges::fill(out.subspan(n), std::byte{0});
    // Looked at afterwards, whatever others wrote before it was read is found.
    FindBefore(plan, (*fd)->get(), before);
  } else if (fd.error().code == ESTALE && plan.preimages) {
    before.preimage = plan.preimages->Find(plan.state);
  }
  const auto& old = before.preimage;
  if (old && old->size() >= offset + out.size()) {
    std::ranges::copy(ByteSpan(*old).subspan(offset, out.size()), out.begin());
    return {};
  }
  if (!fd) return std::unexpected(fd.error());
  if (before.patches.empty()) return {};
  return overwritten_->Restore(before.patches, offset, out);
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
  if (!kept) kept = base.OpenFile(origin.path).value_or(nullptr);
  if (!kept || !IsSameFile(base, kept->get(), state)) return old;
  return filesystem.OldContentOf(kept->get(), origin);
}

std::optional<Bytes> OverlayFilesystem::OldContentOf(int fd,
                                                     const BaseOrigin& origin) {
  const Fingerprint state = Fingerprint::Of(origin);
  Bytes content(origin.size);
  const auto n = ReadFully(fd, 0, content);
  if (!n) return {};
  if (IsInState(base_, fd, state)) {
    if (*n != content.size()) return {};
    return content;
  }
  struct stat st{};
  if (!overwritten_ || ::fstat(fd, &st) != 0) return {};
  const auto patches = overwritten_->Since(state, origin.path);
  const OverwrittenContent::Patch::State now{
      .size = static_cast<uint64_t>(st.st_size),
      .mtime = Timestamp::From(st.st_mtim)};
  // What somebody else wrote since, nobody can take away.
  const bool is_theirs = !patches.empty() && patches.front().after == now;
  if (!is_theirs || !overwritten_->Restore(patches, 0, content)) return {};
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

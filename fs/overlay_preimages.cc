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

void OverlayFilesystem::UseVaults(std::unique_ptr<VaultFiles> vaults) {
  vaults_ = std::move(vaults);
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

std::optional<Bytes> OverlayFilesystem::PreimageOf(const ReadPlan& plan,
                                                   int fd) const {
  if (!plan.changed || !plan.preimages) return {};
  struct stat st{};
  const bool patched = ::fstat(fd, &st) == 0 &&
                       (static_cast<uint64_t>(st.st_size) != plan.state.size ||
                        Timestamp::From(st.st_mtim) != plan.state.mtime ||
                        Timestamp::From(st.st_ctim) != plan.state.ctime);
  if (!patched) return {};
  return plan.preimages->Find(plan.state);
}

Status OverlayFilesystem::ReadOrigin(const ReadPlan& plan, uint64_t offset,
                                     MutableByteSpan out) {
  auto fd = OpenBase(plan);
  std::optional<Bytes> old;
  if (fd) {
    old = PreimageOf(plan, (*fd)->get());
  } else if (fd.error().code == ESTALE && plan.preimages) {
    old = plan.preimages->Find(plan.state);
  }
  if (old && old->size() >= offset + out.size()) {
    std::ranges::copy(ByteSpan(*old).subspan(offset, out.size()), out.begin());
    return {};
  }
  if (!fd) return std::unexpected(std::move(fd).error());
  const size_t n = TRY(ReadFully((*fd)->get(), offset, out));
  // Somebody cut the base file short behind our back.
  std::ranges::fill(out.subspan(n), std::byte{0});
  return {};
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
  if (!kept) return old;
  old.emplace(origin.size);
  const auto n = ReadFully(kept->get(), 0, *old);
  if (!n || *n != origin.size) old.reset();
  return old;
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

#include "fs/origin/origin_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "fs/host/xattrs.h"
#include "journal/change.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// Attempts to read a file while another process writes to it.
constexpr int kReadTries = 5;

/// Whether the file was not written to between the two calls of fstat.
bool AreSame(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size &&
         Timestamp::From(a.st_mtim) == Timestamp::From(b.st_mtim) &&
         Timestamp::From(a.st_ctim) == Timestamp::From(b.st_ctim);
}

/// Copies the wanted part of `content`, if it exists.
bool CopyFrom(const std::optional<Bytes>& content, uint64_t offset,
              MutableByteSpan out) {
  if (!content || content->size() < offset + out.size()) return false;
  std::ranges::copy(ByteSpan(*content).subspan(offset, out.size()),
                    out.begin());
  return true;
}

/// All tracked attributes of an open object.
Result<std::map<std::string, std::string>> XattrsIn(int fd) {
  std::map<std::string, std::string> xattrs;
  for (const std::string& name : TRY(TrackedXattrNames(fd))) {
    xattrs[name] = TRY(XattrOf(ProcPath(fd), name));
  }
  return xattrs;
}

}  // namespace

void OriginReader::UseVaults(std::unique_ptr<VaultFiles> vaults,
                             std::unique_ptr<OverwrittenContent> overwritten) {
  vaults_ = std::move(vaults);
  overwritten_ = std::move(overwritten);
}

void OriginReader::BeginsAt(Timestamp time) {
  if (overwritten_) overwritten_->Begin(time);
}

std::shared_ptr<Preimages> OriginReader::UsePreimages(
    std::shared_ptr<Preimages> preimages) {
  const MutexLock lock(mutex_);
  return std::exchange(preimages_, std::move(preimages));
}

std::shared_ptr<Preimages> OriginReader::preimages() const {
  const MutexLock lock(mutex_);
  return preimages_;
}

Fingerprint OriginReader::FingerprintOf(const struct stat& st) const {
  return {.dev = base_.RelativeDevice(st.st_dev),
          .ino = st.st_ino,
          .size = static_cast<uint64_t>(st.st_size),
          .mtime = Timestamp::From(st.st_mtim),
          .ctime = Timestamp::From(st.st_ctim)};
}

// --- content ---------------------------------------------------------------

Result<SharedFd> OriginReader::Open(const OriginFile& file) {
  if (file.pinned) return file.pinned;
  using OnOther = BaseFileCache::OnOther;
  const BaseIdentity origin{.dev = file.state.dev, .ino = file.state.ino};
  auto fd = files_.Get(file.ino, file.path, origin,
                       file.must_match ? OnOther::kFail : OnOther::kAccept);
  if (fd || fd.error().code != ESTALE) return fd;
  for (const std::string& path : file.other_paths) {
    auto other = files_.Get(file.ino, path, origin, OnOther::kFail);
    if (other) return other;
  }
  const SharedFd kept = FindElsewhere(file.state, file.path);
  if (!kept) return fd;
  files_.Put(file.ino, origin, kept);
  return kept;
}

SharedFd OriginReader::FindElsewhere(const Fingerprint& state,
                                     const std::string& path) {
  SharedFd kept = vaults_ ? vaults_->Find(state) : nullptr;
  return kept ? kept : moved_.Find(state, path);
}

Status OriginReader::FindOldState(const OriginFile& file, int fd,
                                  OldState& old) const {
  struct stat st{};
  if (!file.changed) return {};
  if (::fstat(fd, &st) != 0) return Fail(errno, "stat " + file.path);
  if (IsUnchanged(st, file.state)) return {};
  if (AreSame(st, old.seen)) return {};
  old = {.seen = st, .preimage = {}, .patches = {}};
  if (const auto kept = preimages()) old.preimage = kept->Find(file.state);
  if (old.preimage || !overwritten_) return {};
  const OverwrittenContent::Noted noted{file.state, file.may_follow};
  old.patches = TRY(overwritten_->Find(noted, file.path, st)).patches;
  return {};
}

Status OriginReader::Read(const OriginFile& file, OldState& old,
                          uint64_t offset, MutableByteSpan out) {
  const auto fd = Open(file);
  const auto kept = preimages();
  if (!fd && fd.error().code == ESTALE && kept) {
    old.preimage = kept->Find(file.state);
    if (CopyFrom(old.preimage, offset, out)) return {};
  }
  if (!fd) return std::unexpected(fd.error());
  for (int tries = 0; tries < kReadTries; ++tries) {
    if (tries > 0) old = {};
    auto done = TryRead(file, (*fd)->get(), old, offset, out);
    if (done || done.error().code != EAGAIN) return done;
  }
  // Constant writes come from another program, not from a commit.
  if (old.patches.empty()) return {};
  auto restored = overwritten_->Restore(old.patches, offset, out);
  if (!restored && restored.error().code == ENOENT) restored.error().code = EIO;
  return restored;
}

Status OriginReader::TryRead(const OriginFile& file, int fd, OldState& old,
                             uint64_t offset, MutableByteSpan out) const {
  struct stat before{};
  struct stat after{};
  if (::fstat(fd, &before) != 0) return Fail(errno, "stat " + file.path);
  if (file.guarded) TRY(check_told_(file.ino, file.told, before, fd));
  const size_t n = TRY(ReadFully(fd, offset, out));
  // Another program may have truncated the base file.
  std::ranges::fill(out.subspan(n), std::byte{0});
  // A search after the read finds all patches before it.
  TRY(FindOldState(file, fd, old));
  if (CopyFrom(old.preimage, offset, out)) return {};
  if (!file.changed) return {};
  // If the file changed meanwhile, the patches do not fit the content.
  if (::fstat(fd, &after) != 0) return Fail(errno, "stat " + file.path);
  if (!AreSame(before, after)) return Fail(EAGAIN, "read " + file.path);
  if (old.patches.empty()) return {};
  auto restored = overwritten_->Restore(old.patches, offset, out);
  if (restored || restored.error().code != ENOENT) return restored;
  // The history was dropped meanwhile.
  return Fail(EAGAIN, "read " + file.path);
}

bool OriginReader::IsAsTold(const OriginFile& file, int fd) const {
  struct stat now{};
  return ::fstat(fd, &now) == 0 && check_told_(file.ino, file.told, now, fd);
}

bool OriginReader::VisitData(const OriginFile& file, Range range,
                             const RangeVisitor& visit) {
  const auto fd = Open(file);
  OldState old;
  const bool shown = !fd || !file.guarded || IsAsTold(file, (*fd)->get());
  if (!shown) return visit(range);
  while (range.from < range.to) {
    // A later read reports any error.
    const off_t at =
        fd ? ::lseek((*fd)->get(), static_cast<off_t>(range.from), SEEK_DATA)
           : -1;
    const bool is_end = at < 0 && fd && errno == ENXIO;
    const off_t hole = at < 0 ? -1 : ::lseek((*fd)->get(), at, SEEK_HOLE);
    // A changed file may have different holes.
    const bool is_known = fd && FindOldState(file, (*fd)->get(), old);
    if (!is_known || old.exists()) return visit(range);
    if (is_end) return true;
    if (hole <= at) return visit(range);
    if (static_cast<uint64_t>(at) >= range.to) return true;
    const uint64_t to = std::min(static_cast<uint64_t>(hole), range.to);
    if (!visit({static_cast<uint64_t>(at), to})) return false;
    range.from = to;
  }
  return true;
}

std::optional<Bytes> OriginReader::OldContent(const BaseOrigin& origin) {
  const Fingerprint state = Fingerprint::Of(origin);
  std::optional<Bytes> old;
  if (const auto kept = preimages()) old = kept->Find(state);
  if (old || origin.size > kRecordContentMax) return old;
  SharedFd kept = vaults_ ? vaults_->Find(state) : nullptr;
  // Without FindExpected each rewritten file would cost a search of its own.
  if (!kept) kept = moved_.FindExpected(state, origin.path);
  const bool is_elsewhere = kept != nullptr;
  if (!kept) kept = base_.OpenFile(origin.path).value_or(nullptr);
  if (!kept || !IsSameFile(base_, kept->get(), state)) return old;
  Bytes content(origin.size);
  struct stat st{};
  const auto n = ReadFully(kept->get(), 0, content);
  if (!n || ::fstat(kept->get(), &st) != 0 || !overwritten_) {
    return old;
  }
  const auto since = overwritten_->Find({.state = state}, origin.path, st);
  if (!since) return old;
  // The writes of other programs cannot be reverted.
  if (since->exact) {
    const bool restored =
        overwritten_->Restore(since->patches, 0, content).has_value();
    if (!restored) return old;
    return content;
  }
  // A rename, a new hard link and an unlink change ctime.
  const bool is_it = since->patches.empty() && is_elsewhere &&
                     *n == content.size() &&
                     IsInState(base_, kept->get(), state);
  if (!is_it) return old;
  return content;
}

Result<size_t> OriginReader::ReadBase(const std::string& path, uint64_t offset,
                                      MutableByteSpan out) {
  const SharedFd fd = TRY(base_.OpenFile(path));
  struct stat st{};
  const auto kept = preimages();
  const bool known = kept && ::fstat(fd->get(), &st) == 0;
  const size_t n = TRY(ReadFully(fd->get(), offset, out));
  if (known) {
    kept->ReadAlong(FingerprintOf(st), fd->get(), offset, out.first(n));
  }
  return n;
}

Status OriginReader::CheckReadable(Ino ino, const BaseOrigin& origin) {
  static const uid_t kUser = ::geteuid();
  const bool is_readable =
      kUser == 0 || (origin.uid == kUser && (origin.mode & S_IRUSR) != 0);
  if (is_readable) return {};
  const auto fd = files_.Get(ino, origin.path, BaseIdentity::Of(origin),
                             BaseFileCache::OnOther::kAccept);
  if (!fd && fd.error().code == EACCES) return std::unexpected(fd.error());
  return {};
}

// --- pre-images ------------------------------------------------------------

void OriginReader::KeepPreimage(Ino ino, const BaseOrigin& origin) {
  const auto kept = preimages();
  const Fingerprint state = Fingerprint::Of(origin);
  if (!kept || !kept->Wants(state)) return;
  const auto fd = files_.Get(ino, origin.path, BaseIdentity::Of(origin),
                             BaseFileCache::OnOther::kFail);
  if (fd) kept->Save(state, (*fd)->get());
}

void OriginReader::KeepPreimage(const std::string& path,
                                const struct stat& st) {
  const auto kept = preimages();
  if (!kept || !S_ISREG(st.st_mode)) return;
  const Fingerprint state = FingerprintOf(st);
  if (!kept->Wants(state)) return;
  if (const auto fd = base_.OpenFile(path)) kept->Save(state, (*fd)->get());
}

// --- extended attributes ---------------------------------------------------

Result<std::map<std::string, std::string>> OriginReader::BaseXattrs(
    const std::string& path, std::optional<uint64_t> ino) const {
  const auto fd = base_.OpenPath(path);
  // A program deleted it; the changed inode stays.
  if (!fd && IsGone(fd.error())) return std::map<std::string, std::string>();
  if (!fd) return std::unexpected(fd.error());
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, "stat " + path);
  if (ino && *ino != st.st_ino) {
    return Fail(ESTALE, path + " was replaced in the base");
  }
  return XattrsIn(fd->get());
}

Result<SharedFd> OriginReader::OpenMoved(const OriginXattrs& source) {
  if (!source.state) return SharedFd();
  const auto st = base_.Stat(source.path);
  if (!st && !IsGone(st.error())) return std::unexpected(st.error());
  const bool is_there = st &&
                        base_.RelativeDevice(st->st_dev) == source.state->dev &&
                        st->st_ino == source.state->ino;
  if (is_there) return SharedFd();
  SharedFd kept = vaults_ ? vaults_->Find(*source.state) : nullptr;
  // Without FindExpected each rewritten file would cost a search of its own.
  if (!kept) kept = moved_.FindExpected(*source.state, source.path);
  if (!kept) return Fail(ENOENT, "open " + source.path);
  return kept;
}

Result<SharedFd> OriginReader::OpenSource(const OriginXattrs& source) {
  SharedFd moved = TRY(OpenMoved(source));
  if (moved) return moved;
  auto fd = std::make_shared<UniqueFd>(TRY(base_.OpenPath(source.path)));
  if (!source.told) return fd;
  struct stat st{};
  if (::fstat(fd->get(), &st) != 0) return Fail(errno, "stat " + source.path);
  // Another program put an object of another type there.
  if (source.upper && (st.st_mode & S_IFMT) != (source.told->mode & S_IFMT)) {
    return Fail(ENOENT, source.path + " was replaced in the base");
  }
  const int list = source.asks_acl ? kNoAcl : fd->get();
  TRY(check_told_(source.ino, *source.told, st, list));
  return fd;
}

Result<std::vector<std::string>> OriginReader::ListXattrs(
    const OriginXattrs& source) {
  const auto fd = OpenSource(source);
  if (!fd && IsGone(fd.error())) return std::vector<std::string>();
  if (!fd) return std::unexpected(fd.error());
  return TrackedXattrNames((*fd)->get());
}

Result<std::map<std::string, std::string>> OriginReader::Xattrs(
    const OriginXattrs& source) {
  const auto fd = OpenSource(source);
  if (!fd && IsGone(fd.error())) {
    return std::map<std::string, std::string>();
  }
  if (!fd) return std::unexpected(fd.error());
  return XattrsIn((*fd)->get());
}

Result<std::string> OriginReader::GetXattr(const OriginXattrs& source,
                                           const std::string& name) {
  const SharedFd fd = TRY(OpenSource(source));
  return XattrOf(ProcPath(fd->get()), name);
}

}  // namespace txfs

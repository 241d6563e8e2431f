#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fs/overlay/overlay.h"
#include "fs/posix/checks.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// A new file that passes this gets a segment of its own, bytes.
constexpr uint64_t kOwnSegmentFrom = 1 << 20;

bool IsRegular(const Inode& inode) {
  return inode.attr().type == FileType::kRegular;
}

}  // namespace

// --- reading ---------------------------------------------------------------

OverlayFilesystem::ReadPlan OverlayFilesystem::PlanRead(const Inode& inode,
                                                        uint64_t offset,
                                                        uint64_t length) const {
  ReadPlan plan;
  plan.ino = inode.ino;
  if (const auto& base = inode.record.base) {
    const auto place = PlaceInBase(inode);
    const bool moved = !place || *place != base->path;
    plan.base_path = place.value_or(base->path);
    // A pristine inode is whatever its path leads to. What lies under extents
    // must be what it was when they were written.
    plan.must_match = inode.upper || inode.IsOrphan() || moved;
    // What is noted may be another file's by now.
    const bool has_others = inode.upper && inode.links.size() > 1;
    if (has_others) plan.other_paths = tree_.KnownBasePaths(inode);
    plan.may_follow = inode.attr().nlink < base->nlink;
    // One of which only names were deleted follows the base.
    const bool follows = plan.may_follow && !inode.IsOrphan() &&
                         inode.IsUnchanged() && tree_.UpperNames(inode) == 0;
    plan.changed = (inode.upper || inode.IsOrphan()) && !follows;
    plan.state = Fingerprint::Of(*base);
    plan.told = Told::Of(*base);
  }
  plan.pinned = inode.pinned_base;
  plan.journal = inode.retired;
  const uint64_t size = inode.attr().size;
  if (offset >= size) return plan;
  const uint64_t end = offset + std::min(length, size - offset);

  // What no extent covers: the base's up to base_limit, then zeros.
  const auto add_gap = [&](uint64_t from, uint64_t to) {
    const uint64_t limit =
        std::clamp(inode.attr().base_limit, from, std::max(from, to));
    if (from < limit) {
      plan.pieces.push_back({Piece::Source::kBase, from, limit - from, {}, 0});
    }
    if (limit < to) {
      plan.pieces.push_back({Piece::Source::kZero, limit, to - limit, {}, 0});
    }
  };
  auto at = inode.extents.upper_bound(offset);
  if (at != inode.extents.begin() && std::prev(at)->second.end() > offset) --at;
  uint64_t position = offset;
  for (; at != inode.extents.end() && position < end; ++at) {
    const Extent& extent = at->second;
    if (extent.offset >= end) break;
    if (position < extent.offset) add_gap(position, extent.offset);
    const uint64_t from = std::max(position, extent.offset);
    const uint64_t to = std::min(end, extent.end());
    const auto source = extent.content.segment == 0 ? Piece::Source::kZero
                                                    : Piece::Source::kSpool;
    plan.pieces.push_back(
        {source, from, to - from, extent.content, from - extent.offset});
    position = to;
  }
  if (position < end) add_gap(position, end);
  return plan;
}

Result<SharedFd> OverlayFilesystem::OpenBase(const ReadPlan& plan) {
  if (plan.pinned) return plan.pinned;
  using OnOther = BaseFileCache::OnOther;
  const BaseIdentity origin{.dev = plan.state.dev, .ino = plan.state.ino};
  auto fd = files_.Get(plan.ino, plan.base_path, origin,
                       plan.must_match ? OnOther::kFail : OnOther::kAccept);
  if (fd || fd.error().code != ESTALE) return fd;
  for (const std::string& path : plan.other_paths) {
    auto other = files_.Get(plan.ino, path, origin, OnOther::kFail);
    if (other) return other;
  }
  const SharedFd kept = FindElsewhere(plan.state, plan.base_path);
  if (!kept) return fd;
  files_.Put(plan.ino, origin, kept);
  return kept;
}

SharedFd OverlayFilesystem::FindElsewhere(const Fingerprint& state,
                                          const std::string& path) {
  SharedFd kept = vaults_ ? vaults_->Find(state) : nullptr;
  return kept ? kept : moved_.Find(state, path);
}

Result<size_t> OverlayFilesystem::ReadPieces(const ReadPlan& plan,
                                             uint64_t offset,
                                             MutableByteSpan out) {
  size_t done = 0;
  OldState old;
  for (const Piece& piece : plan.pieces) {
    const MutableByteSpan target =
        out.subspan(piece.offset - offset, piece.length);
    if (piece.source == Piece::Source::kSpool) {
      TRY(plan.journal->Read(piece.content, piece.into, target));
    } else if (piece.source == Piece::Source::kBase) {
      TRY(ReadOrigin(plan, old, piece.offset, target));
    } else {
      std::ranges::fill(target, std::byte{0});
    }
    done += piece.length;
  }
  return done;
}

Result<size_t> OverlayFilesystem::Read(Ino ino, uint64_t offset,
                                       MutableByteSpan out) {
  const ReaderLock gate(gate_);
  // Keeps the extents from being released while they are read.
  const ReaderLock content(ContentLock(ino));
  ReadPlan plan;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    if (inode->IsDirectory()) return Fail(EISDIR, "read");
    plan = PlanRead(*inode, offset, out.size());
    plan.guarded = IsGuarded(*inode);
  }
  if (!plan.journal) plan.journal = journal_;
  plan.preimages = preimages_;
  return ReadPieces(plan, offset, out);
}

Result<size_t> OverlayFilesystem::Frozen::Read(const Inode& inode,
                                               uint64_t offset,
                                               MutableByteSpan out) {
  OverlayFilesystem& fs = filesystem;
  ReadPlan plan;
  [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
    plan = fs.PlanRead(inode, offset, out.size());
    if (!plan.journal) plan.journal = fs.journal_;
    plan.preimages = fs.preimages_;
  }();
  return fs.ReadPieces(plan, offset, out);
}

bool OverlayFilesystem::VisitBaseData(const ReadPlan& plan, Range range,
                                      const RangeVisitor& visit) {
  const auto fd = OpenBase(plan);
  OldState old;
  const bool shown =
      !fd || !plan.guarded || CheckTold(plan.ino, plan.told, (*fd)->get());
  if (!shown) return visit(range);
  while (range.from < range.to) {
    // Whatever stands in the way, reading will meet it.
    const off_t at =
        fd ? ::lseek((*fd)->get(), static_cast<off_t>(range.from), SEEK_DATA)
           : -1;
    const bool is_end = at < 0 && fd && errno == ENXIO;
    const off_t hole = at < 0 ? -1 : ::lseek((*fd)->get(), at, SEEK_HOLE);
    // The holes may be those of what others made of it.
    const bool is_known = fd && FindOldState(plan, (*fd)->get(), old);
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

void OverlayFilesystem::VisitData(const ReadPlan& plan,
                                  const RangeVisitor& visit) {
  for (const Piece& piece : plan.pieces) {
    const Range range{piece.offset, piece.offset + piece.length};
    const bool go_on = piece.source == Piece::Source::kZero ||
                       (piece.source == Piece::Source::kSpool
                            ? visit(range)
                            : VisitBaseData(plan, range, visit));
    if (!go_on) return;
  }
}

std::vector<Range> OverlayFilesystem::Frozen::DataIn(const Inode& inode,
                                                     Range range) {
  OverlayFilesystem& fs = filesystem;
  std::vector<Range> data;
  [&]() NO_THREAD_SAFETY_ANALYSIS {  // held by WhileFrozen
    ReadPlan plan = fs.PlanRead(inode, range.from, range.to - range.from);
    plan.preimages = fs.preimages_;
    fs.VisitData(plan, [&](Range found) {
      data.push_back(found);
      return true;
    });
  }();
  return data;
}

Result<size_t> OverlayFilesystem::ReadBase(const std::string& path,
                                           uint64_t offset,
                                           MutableByteSpan out) {
  const ReaderLock gate(gate_);
  const SharedFd fd = TRY(base_.OpenFile(path));
  struct stat st{};
  const bool known = preimages_ && ::fstat(fd->get(), &st) == 0;
  const size_t n = TRY(ReadFully(fd->get(), offset, out));
  if (known) {
    preimages_->ReadAlong(FingerprintOf(path, st), fd->get(), offset,
                          out.first(n));
  }
  return n;
}

// --- writing ---------------------------------------------------------------

Result<size_t> OverlayFilesystem::Write(const Caller& caller, Ino ino,
                                        uint64_t offset, ByteSpan bytes,
                                        WriteMode mode) {
  size_t done = 0;
  WritePlace place{.asked = offset, .at = offset};
  while (done < bytes.size()) {
    const ByteSpan record = bytes.subspan(
        done, std::min<size_t>(bytes.size() - done, kRecordContentMax));
    auto written = Answered(caller, [&](const Caller& asking) {
      return WriteRecord(asking, ino, place, record, mode);
    });
    if (!written && done == 0) {
      return Logged(std::move(written), Op::kWrite, caller, ino, {});
    }
    if (!written) break;
    done += *written;
    mode.append = false;  // what follows goes behind it
  }
  return done;
}

Result<StagedContent> OverlayFilesystem::StageFor(Ino ino, WritePlace& place,
                                                  ByteSpan bytes, bool append,
                                                  uint32_t* segment) {
  uint64_t position = 0;
  bool wants_segment = false;
  *segment = 0;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    if (inode->IsDirectory()) return Fail(EISDIR, "write");
    if (!IsRegular(*inode)) return Fail(EINVAL, "write");
    // The kernel knows the end as long as nothing but its requests moves it.
    const uint64_t size = inode->attr().size;
    if (append && inode->told_size != size) place.at = size;
    const uint64_t offset = place.at;
    TRY(CheckRange(offset, bytes.size()));
    if (inode->IsOrphan()) {
      // No record will carry the content, so it goes to the spool at once.
      *segment = inode->orphan_segment;
      position = inode->orphan_end;
      wants_segment = true;
    } else if (inode->attr().base_limit == 0 &&
               offset + bytes.size() > kOwnSegmentFrom) {
      wants_segment = offset >= inode->own_end;
      *segment = wants_segment ? inode->attr().own_segment : 0;
      position = offset;
    }
  }
  if (!wants_segment) return journal_->Stage(bytes);
  if (*segment == 0) *segment = TRY(journal_->NewSegment());
  return journal_->Stage(bytes, *segment, position);
}

Status OverlayFilesystem::AdoptRetired(Ino ino) {
  std::shared_ptr<Journal> retired;
  std::vector<Extent> extents;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    retired = inode->retired;
    if (!retired) return {};
    for (const auto& [offset, extent] : inode->extents) {
      extents.push_back(extent);
    }
  }
  ExtentEdit edit{.ino = ino, .before = extents};
  Bytes buffer;
  const uint32_t segment = TRY(journal_->NewSegment());
  uint64_t position = 0;
  for (const Extent& extent : extents) {
    if (extent.content.segment == 0) {
      edit.after.push_back(extent);
      continue;
    }
    buffer.resize(extent.length);
    TRY(retired->Read(extent.content, 0, buffer));
    const StagedContent staged =
        TRY(journal_->Stage(buffer, segment, position));
    position += buffer.size();
    edit.after.push_back({extent.offset, extent.length, staged.ref});
  }
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  Tree::ReplaceExtents(*inode, edit);
  inode->retired.reset();
  // Its content counts from now on.
  meters_.ForgetTree();
  return {};
}

/// Before content or a pre-image goes to the store. Not instead of the
/// judgement when it is written: until then the tree is not locked, and the
/// file may get a name that is protected.
Status OverlayFilesystem::JudgeWrite(Plan& plan, Ino ino) {
  if (!policy_) return {};
  const ReaderLock lock(tree_mutex_);
  const Inode* inode = TRY(FindInode(ino));
  TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
  plan.change().path = tree_.PathOf(*inode);
  // Limits judge what is staged.
  Inquiry* const inquiry = plan.inquiry();
  return inquiry == nullptr ? Status() : inquiry->Check(plan.change());
}

Result<size_t> OverlayFilesystem::WriteRecord(const Caller& caller, Ino ino,
                                              WritePlace& place, ByteSpan bytes,
                                              WriteMode mode) {
  Plan plan = StartPlan(Op::kWrite, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock content(ContentLock(ino));
  TRY(JudgeWrite(plan, ino));
  TRY(AdoptRetired(ino));
  TRY(CheckReadable(ino));
  KeepPreimage(ino);
  uint32_t segment = 0;
  const StagedContent staged =
      TRY(StageFor(ino, place, bytes, mode.append, &segment));
  const uint64_t offset = place.at;

  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  Change& change = plan.change();
  change.path = tree_.PathOf(*inode);
  change.offset = offset;
  change.length = bytes.size();
  if (auto allowed = Judging(plan).Alter(policy::Effect::kContent, *inode);
      !allowed) {
    journal_->Abandon(staged);
    return std::unexpected(std::move(allowed).error());
  }
  const uint64_t end = offset + bytes.size();
  ExtentEdit edit =
      PlanExtents(*inode, offset, end, {{offset, bytes.size(), staged.ref}});
  const std::vector<Extent> released = ReleasedBy(edit, offset, end);
  Attr& attr = plan.EditAttr(*inode);
  attr.size = std::max(attr.size, end);
  attr.mtime = attr.ctime = plan.now();
  if (mode.kill_privileges) attr.mode = WithoutPrivileges(attr.mode);
  if (inode->IsOrphan()) {
    inode->orphan_segment = segment;
    inode->orphan_end += bytes.size();
  } else if (segment != 0) {
    attr.own_segment = segment;
  }
  plan.SetExtents(std::move(edit));
  auto accepted = AcceptFor(*inode, std::move(plan), &staged);
  if (!accepted) {
    journal_->Abandon(staged);
    return std::unexpected(std::move(accepted).error());
  }
  ReleaseAll(*journal_, released, *accepted);
  place = {.asked = place.asked + bytes.size(), .at = end};
  inode->told_size = std::max<uint64_t>(inode->told_size, place.asked);
  inode->attr_told = false;
  return bytes.size();
}

// --- ranges ----------------------------------------------------------------

Status OverlayFilesystem::Allocate(const Caller& caller, Ino ino,
                                   uint64_t offset, uint64_t length,
                                   AllocateMode mode) {
  return Logged(Answered(caller,
                         [&](const Caller& asking) {
                           return DoAllocate(asking, ino, offset, length, mode);
                         }),
                Op::kAllocate, caller, ino, {});
}

Status OverlayFilesystem::DoAllocate(const Caller& caller, Ino ino,
                                     uint64_t offset, uint64_t length,
                                     AllocateMode mode) {
  if (length == 0) return Fail(EINVAL, "fallocate");
  TRY(CheckRange(offset, length));
  Plan plan = StartPlan(Op::kAllocate, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock content(ContentLock(ino));
  TRY(AdoptRetired(ino));
  TRY(CheckReadable(ino));
  KeepPreimage(ino);
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  if (inode->IsDirectory()) return Fail(EISDIR, "fallocate");
  if (!IsRegular(*inode)) return Fail(ENODEV, "fallocate");
  Change& change = plan.change();
  change.path = tree_.PathOf(*inode);
  change.offset = offset;
  change.length = length;
  TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
  const uint64_t end = offset + length;
  Attr& attr = plan.EditAttr(*inode);
  std::vector<Extent> released;
  if (mode == AllocateMode::kPunchHole || mode == AllocateMode::kZero ||
      mode == AllocateMode::kZeroKeepSize) {
    std::vector<Extent> hole;
    if (offset < attr.base_limit) {
      hole.push_back({offset, std::min(end, attr.base_limit) - offset, {}});
    }
    ExtentEdit edit = PlanExtents(*inode, offset, end, hole);
    released = ReleasedBy(edit, offset, end);
    plan.SetExtents(std::move(edit));
  }
  const bool grows =
      mode == AllocateMode::kReserve || mode == AllocateMode::kZero;
  if (grows) {
    attr.size = std::max(attr.size, end);
    inode->told_size = std::max<uint64_t>(inode->told_size, end);
  }
  attr.mtime = attr.ctime = plan.now();
  const Lsn lsn = TRY(AcceptFor(*inode, std::move(plan)));
  ReleaseAll(*journal_, released, lsn);
  return {};
}

/// Not GetAttr, which takes the kernel to learn what it answers.
Result<uint64_t> OverlayFilesystem::SizeOf(Ino ino) {
  const ReaderLock gate(gate_);
  const ReaderLock lock(tree_mutex_);
  return TRY(FindInode(ino))->attr().size;
}

Result<size_t> OverlayFilesystem::CopyRange(const Caller& caller, Ino from,
                                            uint64_t from_offset, Ino to,
                                            uint64_t to_offset,
                                            uint64_t length) {
  // As the kernel does: first cut at the end of the source, then look for an
  // overlap.
  const uint64_t size = TRY(SizeOf(from));
  if (from_offset >= size) return 0;
  length = std::min(length, size - from_offset);
  const bool overlap = from == to && from_offset < to_offset + length &&
                       to_offset < from_offset + length;
  if (overlap) return Fail(EINVAL, "copy_file_range");
  Bytes buffer(std::min<uint64_t>(length, kRecordContentMax));
  size_t done = 0;
  while (done < length) {
    const size_t want = std::min<uint64_t>(length - done, buffer.size());
    const size_t n = TRY(
        Read(from, from_offset + done, MutableByteSpan(buffer).first(want)));
    if (n == 0) break;
    auto written =
        Write(caller, to, to_offset + done, ByteSpan(buffer).first(n), {});
    if (!written && done == 0) return written;
    if (!written) break;
    done += *written;
    if (*written < n || n < want) break;
  }
  return done;
}

Result<uint64_t> OverlayFilesystem::Seek(Ino ino, uint64_t offset, int whence) {
  const ReaderLock gate(gate_);
  const ReaderLock content(ContentLock(ino));
  ReadPlan plan;
  uint64_t size = 0;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    size = inode->attr().size;
    if (offset >= size) return Fail(ENXIO, "lseek");
    plan = PlanRead(*inode, offset, size - offset);
    plan.guarded = IsGuarded(*inode);
  }
  plan.preimages = preimages_;
  const bool wants_data = whence == SEEK_DATA;
  std::optional<uint64_t> data;
  uint64_t hole = offset;
  VisitData(plan, [&](Range found) {
    if (wants_data) {
      data = found.from;
      return false;
    }
    if (found.from > hole) return false;
    hole = found.to;
    return true;
  });
  if (!wants_data) return hole;
  if (!data) return Fail(ENXIO, "lseek");
  return *data;
}

}  // namespace txfs

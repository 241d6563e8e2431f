#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "fs/overlay/overlay.h"
#include "fs/posix/checks.h"
#include "fs/posix/privileges.h"
#include "fs/veto/lock_check.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

/// A new file that passes this gets a segment of its own, bytes.
constexpr uint64_t kOwnSegmentFrom = 1 << 20;

constexpr uint64_t kSeekBlock = 4096;

uint64_t RoundDown(uint64_t offset) { return offset / kSeekBlock * kSeekBlock; }
uint64_t RoundUp(uint64_t offset) { return RoundDown(offset + kSeekBlock - 1); }

bool IsRegular(const Inode& inode) {
  return inode.attr().type == FileType::kRegular;
}

/// Whether the content is about to change for the first time and the inode
/// keeps some content of the base.
bool KeepsBaseContent(const Inode& inode) {
  return inode.record.base && !inode.IsOrphan() && !inode.orphan->pinned_base &&
         IsRegular(inode) && inode.attr().base_limit > 0 &&
         !inode.ContentChanged();
}

bool Reserves(AllocateMode mode) {
  return mode == AllocateMode::kReserve ||
         mode == AllocateMode::kReserveKeepSize;
}

/// The parts of `range` in which the file has no content and no space for it.
std::vector<Range> GapsIn(const Inode& inode, Range range) {
  std::vector<Range> gaps;
  const auto add = [&](uint64_t from, uint64_t to) {
    const Range gap{std::max(from, range.from), std::min(to, range.to)};
    if (gap.from >= gap.to) return;
    if (!inode.own->reserved) {
      gaps.push_back(gap);
    } else {
      std::ranges::copy(inode.own->reserved->Missing(gap),
                        std::back_inserter(gaps));
    }
  };
  uint64_t at = inode.attr().base_limit;
  auto first = inode.extents.upper_bound(range.from);
  if (first != inode.extents.begin()) --first;
  for (; first != inode.extents.end(); ++first) {
    const auto& [offset, extent] = *first;
    if (offset >= range.to) break;
    if (at < offset) add(at, offset);
    if (extent.content.segment == 0) add(offset, extent.end());
    at = std::max(at, extent.end());
  }
  add(at, range.to);
  return gaps;
}

}  // namespace

// --- reading ---------------------------------------------------------------

ReadPlan OverlayFilesystem::PlanRead(const Inode& inode, uint64_t offset,
                                     uint64_t length) const {
  ReadPlan plan;
  OriginFile& origin = plan.origin;
  origin.ino = inode.ino;
  if (const auto& base = inode.record.base) {
    const auto place = PlaceInBase(inode);
    const bool moved = !place || *place != base->path;
    origin.path = place.value_or(base->path);
    // A pristine inode reads the file at its path. Content below extents must
    // be that of the recorded file.
    origin.must_match = inode.upper || inode.IsOrphan() || moved;
    // The recorded path may lead to another file now.
    const bool has_others = inode.upper && inode.links.size() > 1;
    if (has_others) origin.other_paths = tree_.KnownBasePaths(inode);
    origin.may_follow = inode.attr().nlink < base->nlink;
    // A file of which only names were deleted follows the base.
    const bool follows = origin.may_follow && !inode.IsOrphan() &&
                         inode.IsUnchanged() && tree_.UpperNames(inode) == 0;
    origin.changed = (inode.upper || inode.IsOrphan()) && !follows;
    origin.state = Fingerprint::Of(*base);
    origin.told = Told::Of(*base);
  }
  origin.pinned = inode.orphan->pinned_base;
  plan.journal = inode.orphan->retired;
  const uint64_t size = inode.attr().size;
  if (offset >= size) return plan;
  const uint64_t end = offset + std::min(length, size - offset);

  // Ranges without extents: base content up to base_limit, then zeros.
  const auto add_gap = [&](uint64_t from, uint64_t to) {
    const uint64_t limit =
        std::clamp(inode.attr().base_limit, from, std::max(from, to));
    if (from < limit) {
      plan.pieces.push_back(
          {ReadPiece::Source::kBase, from, limit - from, {}, 0});
    }
    if (limit < to) {
      plan.pieces.push_back(
          {ReadPiece::Source::kZero, limit, to - limit, {}, 0});
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
    const auto source = extent.content.segment == 0 ? ReadPiece::Source::kZero
                                                    : ReadPiece::Source::kSpool;
    plan.pieces.push_back(
        {source, from, to - from, extent.content, from - extent.offset});
    position = to;
  }
  if (position < end) add_gap(position, end);
  return plan;
}

Result<size_t> OverlayFilesystem::ReadPieces(const ReadPlan& plan,
                                             uint64_t offset,
                                             MutableByteSpan out) {
  size_t done = 0;
  OriginReader::OldState old;
  for (const ReadPiece& piece : plan.pieces) {
    const MutableByteSpan target =
        out.subspan(piece.offset - offset, piece.length);
    if (piece.source == ReadPiece::Source::kSpool) {
      TRY(plan.journal->Read(piece.content, piece.into, target));
    } else if (piece.source == ReadPiece::Source::kBase) {
      TRY(origins_.Read(plan.origin, old, piece.offset, target));
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
    plan.origin.guarded = IsGuarded(*inode);
  }
  if (!plan.journal) plan.journal = journal_;
  return ReadPieces(plan, offset, out);
}

void OverlayFilesystem::VisitData(const ReadPlan& plan,
                                  const RangeVisitor& visit) {
  for (const ReadPiece& piece : plan.pieces) {
    const Range range{piece.offset, piece.offset + piece.length};
    const bool go_on = piece.source == ReadPiece::Source::kZero ||
                       (piece.source == ReadPiece::Source::kSpool
                            ? visit(range)
                            : origins_.VisitData(plan.origin, range, visit));
    if (!go_on) return;
  }
}

bool OverlayFilesystem::ChecksReads() {
  const ReaderLock gate(gate_);
  return judge_.policy() != nullptr && judge_.policy()->Cares(policy::kReading);
}

Status OverlayFilesystem::CheckRead(const Caller& caller, Ino ino) {
  if (!ChecksReads()) return {};
  return Logged(JudgeRead(caller, ino), Op::kRead, caller, ino, {});
}

PolicyCheck OverlayFilesystem::Judging(Plan& plan) {
  return judge_.Check(tree_, plan);
}

Status OverlayFilesystem::JudgeRead(const Caller& caller, Ino ino) {
  Plan plan = StartPlan(Op::kRead, caller);
  const ReaderLock gate(gate_);
  const ReaderLock lock(tree_mutex_);
  const Inode* inode = TRY(FindInode(ino));
  return Judging(plan).Read(*inode);
}

Result<size_t> OverlayFilesystem::ReadBase(const std::string& path,
                                           uint64_t offset,
                                           MutableByteSpan out) {
  const ReaderLock gate(gate_);
  return origins_.ReadBase(path, offset, out);
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
    // The rest of the bytes follows at `place`.
    mode.append_goes_on = mode.append || mode.append_goes_on;
    mode.append = false;
  }
  return done;
}

Result<WriteLook> OverlayFilesystem::LookBeforeWrite(Plan& plan, Ino ino,
                                                     WritePlace& place,
                                                     size_t size,
                                                     WriteMode mode) {
  const ReaderLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
  plan.change().path = tree_.PathOf(*inode);
  // Limits judge the change in Accept.
  if (Inquiry* inquiry = plan.inquiry()) TRY(inquiry->Check(plan.change()));
  if (inode->IsDirectory()) return Fail(EISDIR, "write");
  if (!IsRegular(*inode)) return Fail(EINVAL, "write");

  WriteLook look{.name_changes = tree_.name_changes(),
                 .retired = inode->orphan->retired != nullptr,
                 .size = size};
  if (KeepsBaseContent(*inode)) look.kept = inode->record.base;
  // The kernel knows the end while only its requests move it.
  const uint64_t end = inode->attr().size;
  if (mode.append && inode->told_size != end) place.at = end;
  TRY(CheckRange(place.at, size));
  TRY(LockCheck(base_).Write(*inode, place.at,
                             mode.append || mode.append_goes_on));
  if (inode->own->reserved) {
    look.promised = inode->own->reserved->BytesIn({place.at, place.at + size});
  }
  if (inode->IsOrphan()) {
    // The journal does not record the content, so it goes to the spool at once.
    look.segment = inode->orphan->segment;
    look.position = inode->orphan->end;
    look.wants_segment = true;
  } else if (inode->attr().base_limit == 0 &&
             place.at + size > kOwnSegmentFrom) {
    look.wants_segment = place.at >= inode->own->own_end;
    look.segment = look.wants_segment ? inode->attr().own_segment : 0;
    look.position = place.at;
  }
  return look;
}

Status OverlayFilesystem::Stage(ByteSpan bytes, WriteLook& look) {
  const bool promised = look.promised >= bytes.size();
  if (!look.wants_segment) {
    look.staged = TRY(journal_->Stage(bytes, 0, 0, promised));
    return {};
  }
  if (look.segment == 0) look.segment = TRY(journal_->NewSegment());
  look.staged =
      TRY(journal_->Stage(bytes, look.segment, look.position, promised));
  return {};
}

void OverlayFilesystem::KeepPreimage(const std::optional<BaseObject>& probe) {
  if (probe) origins_.KeepPreimage(probe->path, probe->st);
}

Status OverlayFilesystem::CheckReadable(Ino ino, bool drops_content) {
  BaseOrigin origin;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = tree_.Find(ino);
    if (inode == nullptr || !KeepsBaseContent(*inode)) return {};
    origin = *inode->record.base;
  }
  // A commit that writes to the file keeps what it overwrites, for its undo.
  const bool is_patched = origin.uid != ::geteuid() || origin.nlink > 1;
  if (drops_content && !is_patched) return {};
  return origins_.CheckReadable(ino, origin);
}

Status OverlayFilesystem::AdoptRetired(Ino ino) {
  std::shared_ptr<Journal> retired;
  std::vector<Extent> extents;
  {
    const ReaderLock lock(tree_mutex_);
    const Inode* inode = TRY(FindInode(ino));
    retired = inode->orphan->retired;
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
  if (Inode::Orphan* orphan = inode->orphan.get()) orphan->retired.reset();
  // Limits count the content from now on.
  judge_.ForgetTree();
  return {};
}

Result<size_t> OverlayFilesystem::WriteRecord(const Caller& caller, Ino ino,
                                              WritePlace& place, ByteSpan bytes,
                                              WriteMode mode) {
  Plan plan = StartPlan(Op::kWrite, caller);
  const ReaderLock mutation(write_gate_);
  const ReaderLock gate(gate_);
  const WriterLock content(ContentLock(ino));
  WriteLook look = TRY(LookBeforeWrite(plan, ino, place, bytes.size(), mode));
  if (look.retired) TRY(AdoptRetired(ino));
  if (look.kept) TRY(origins_.CheckReadable(ino, *look.kept));
  RunBudget::Share share(budget_);
  // The rest was counted when it was reserved.
  TRY(share.Take(bytes.size() - std::min(look.promised, bytes.size()), 0));
  const PromisedSpace::Use use(promised_space_, *journal_, look.promised);
  TRY(Stage(bytes, look));
  const auto preimage =
      ApplyWrite(std::move(plan), caller, ino, place, look, mode);
  if (!preimage) {
    journal_->Abandon(look.staged);
    return std::unexpected(preimage.error());
  }
  share.Keep();
  if (*preimage) origins_.KeepPreimage(ino, **preimage);
  return bytes.size();
}

Result<std::optional<BaseOrigin>> OverlayFilesystem::ApplyWrite(
    Plan plan, const Caller& caller, Ino ino, WritePlace& place,
    WriteLook& look, WriteMode mode) {
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  if (tree_.name_changes() != look.name_changes) {
    TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
    plan.change().path = tree_.PathOf(*inode);
  }
  const uint64_t offset = place.at;
  plan.change().offset = offset;
  plan.change().length = look.size;
  const uint64_t end = offset + look.size;
  ExtentEdit edit =
      PlanExtents(*inode, offset, end, {{offset, look.size, look.staged.ref}});
  const std::vector<Extent> released = ReleasedBy(edit, offset, end);
  Attr& attr = plan.EditAttr(*inode);
  attr.size = std::max(attr.size, end);
  attr.mtime = attr.ctime = plan.now();
  KillPrivileges(options_.rights_of, caller, mode.kill_privileges, attr);
  if (inode->IsOrphan()) {
    inode->orphan.Make().segment = look.segment;
    inode->orphan.Make().end += look.size;
  } else if (look.segment != 0) {
    attr.own_segment = look.segment;
  }
  plan.SetExtents(std::move(edit));
  std::optional<BaseOrigin> preimage = PreimageOf(*inode);
  const Lsn lsn = TRY(AcceptFor(*inode, std::move(plan), &look.staged));
  ReleaseAll(*journal_, released, lsn);
  if (look.promised != 0 && inode->own->reserved) {
    look.promised -= inode->own->reserved->Use({offset, end});
  }
  place = {.asked = place.asked + look.size, .at = end};
  inode->told_size = std::max<uint64_t>(inode->told_size, place.asked);
  inode->attr_told = false;
  return preimage;
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
  const Range range{offset, offset + length};
  std::vector<Range> gaps;
  if (Reserves(mode)) {
    const ReaderLock lock(tree_mutex_);
    Inode* inode = TRY(FindInode(ino));
    // What is refused takes no space, also not for a moment.
    plan.change().path = tree_.PathOf(*inode);
    TRY(LockCheck(base_).Alter(*inode));
    TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
    if (Inquiry* inquiry = plan.inquiry()) TRY(inquiry->Check(plan.change()));
    if (IsRegular(*inode)) gaps = GapsIn(*inode, range);
  }
  const uint64_t promised = TotalBytes(gaps);
  RunBudget::Share share(budget_);
  TRY(share.Take(promised, 0));
  if (promised != 0) TRY(promised_space_.Promise(*journal_, promised));
  const auto preimage =
      ApplyAllocate(std::move(plan), caller, ino, range, mode, gaps);
  if (!preimage) promised_space_.needed() -= promised;
  promised_space_.Trim(*journal_);
  if (!preimage) return std::unexpected(preimage.error());
  share.Keep();
  if (*preimage) origins_.KeepPreimage(ino, **preimage);
  return {};
}

Result<std::optional<BaseOrigin>> OverlayFilesystem::ApplyAllocate(
    Plan plan, const Caller& caller, Ino ino, Range range, AllocateMode mode,
    const std::vector<Range>& gaps) {
  const auto [offset, end] = range;
  const WriterLock lock(tree_mutex_);
  Inode* inode = TRY(FindInode(ino));
  if (inode->IsDirectory()) return Fail(EISDIR, "fallocate");
  if (!IsRegular(*inode)) return Fail(ENODEV, "fallocate");
  Change& change = plan.change();
  change.path = tree_.PathOf(*inode);
  change.offset = offset;
  change.length = end - offset;
  TRY(LockCheck(base_).Alter(*inode));
  TRY(Judging(plan).Alter(policy::Effect::kContent, *inode));
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
  // For fallocate(2) and copy_file_range(2) the kernel decides nothing.
  KillPrivileges(options_.rights_of, caller, std::nullopt, attr);
  std::optional<BaseOrigin> preimage = PreimageOf(*inode);
  const Lsn lsn = TRY(AcceptFor(*inode, std::move(plan)));
  ReleaseAll(*journal_, released, lsn);
  if (!gaps.empty()) {
    if (!inode->own->reserved) {
      inode->own.Make().reserved =
          std::make_unique<Reservation>(promised_space_.needed());
      tree_.NoteReservation();
    }
    inode->own->reserved->Add(gaps);
  } else if (inode->own->reserved && mode == AllocateMode::kPunchHole) {
    inode->own->reserved->Drop(range);
  }
  return preimage;
}

Result<size_t> OverlayFilesystem::CopyRange(const Caller& caller, Ino from,
                                            uint64_t from_offset, Ino to,
                                            uint64_t to_offset,
                                            uint64_t length) {
  // Same order as in the kernel: cut at the end of the source, then check for
  // an overlap.
  // Not by GetAttr, which notes that the kernel receives the attributes.
  const uint64_t size = TRY(WhileShared(
      [&](const Tree& tree, const BaseDirectory&) -> Result<uint64_t> {
        const Inode* inode = tree.Find(from);
        if (inode == nullptr) return Fail(ESTALE, "inode");
        return inode->attr().size;
      }));
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
        Write(caller, to, to_offset + done, ByteSpan(buffer).first(n),
              {.kill_privileges = std::nullopt});
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
    const uint64_t block = RoundDown(offset);
    plan = PlanRead(*inode, block, size - block);
    plan.origin.guarded = IsGuarded(*inode);
  }
  // A block is data as soon as one byte of it is, as on a disk.
  const bool wants_data = whence == SEEK_DATA;
  std::optional<uint64_t> data;
  uint64_t hole = offset;
  VisitData(plan, [&](Range found) {
    if (wants_data) {
      data = std::max(RoundDown(found.from), offset);
      return false;
    }
    if (RoundDown(found.from) > hole) return false;
    hole = std::min(RoundUp(found.to), size);
    return true;
  });
  if (!wants_data) return hole;
  if (!data) return Fail(ENXIO, "lseek");
  return *data;
}

}  // namespace txfs

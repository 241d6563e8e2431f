#include "journal/change.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "journal/journal.h"
#include "journal/support/names.h"
#include "journal/support/overloaded.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

/// In the place of a policy's hash, which it never is.
constexpr uint64_t kRepeatsMark = 0;

constexpr uint8_t kXattrsOwnedFlag = 2;
constexpr uint32_t kNsecPerSec = 1'000'000'000;
constexpr size_t kExtentSize = 44;

struct TypeMode {
  FileType type;
  uint32_t mode;
};
constexpr std::array kTypeModes = {
    TypeMode{FileType::kRegular, S_IFREG},
    TypeMode{FileType::kDirectory, S_IFDIR},
    TypeMode{FileType::kSymlink, S_IFLNK},
    TypeMode{FileType::kFifo, S_IFIFO},
    TypeMode{FileType::kSocket, S_IFSOCK},
    TypeMode{FileType::kCharDevice, S_IFCHR},
    TypeMode{FileType::kBlockDevice, S_IFBLK},
};

using NamedOp = Named<Op>;
constexpr std::array kOpNames = {
    NamedOp{Op::kCreate, "create"},
    NamedOp{Op::kMkdir, "mkdir"},
    NamedOp{Op::kMknod, "mknod"},
    NamedOp{Op::kSymlink, "symlink"},
    NamedOp{Op::kLink, "link"},
    NamedOp{Op::kUnlink, "unlink"},
    NamedOp{Op::kRmdir, "rmdir"},
    NamedOp{Op::kRename, "rename"},
    NamedOp{Op::kExchange, "exchange"},
    NamedOp{Op::kWrite, "write"},
    NamedOp{Op::kTruncate, "truncate"},
    NamedOp{Op::kAllocate, "allocate"},
    NamedOp{Op::kChmod, "chmod"},
    NamedOp{Op::kChown, "chown"},
    NamedOp{Op::kUtimens, "utimens"},
    NamedOp{Op::kSetxattr, "setxattr"},
    NamedOp{Op::kRemovexattr, "removexattr"},
    NamedOp{Op::kReap, "reap"},
    NamedOp{Op::kSavepoint, "savepoint"},
    NamedOp{Op::kRollback, "rollback"},
    NamedOp{Op::kCommit, "commit"},
    NamedOp{Op::kDiscard, "discard"},
    NamedOp{Op::kFollow, "follow"},
    NamedOp{Op::kRead, "read"},
    NamedOp{Op::kRevert, "revert"},
};

Ino DecodeIno(Decoder& in) {
  const Ino ino{in.Get<uint64_t>()};
  if (!IsInodeNumber(ino)) in.SetBad();
  return ino;
}

std::string DecodeName(Decoder& in) {
  std::string name(in.GetString());
  if (!IsEntryName(name)) in.SetBad();
  return name;
}

/// For people: a path, the name of a savepoint, an id.
std::string DecodeText(Decoder& in) {
  std::string text(in.GetString());
  if (text.find('\0') != std::string::npos) in.SetBad();
  return text;
}

bool IsSound(const Extent& extent) {
  if (extent.length == 0 || !IsRangeOfFile(extent.offset, extent.length)) {
    return false;
  }
  const ContentRef& ref = extent.content;
  if (ref.segment == 0) return ref == ContentRef{};
  return ref.record_length <= kRecordContentMax &&
         IsRangeOfFile(ref.record_position, ref.record_length) &&
         ref.delta <= ref.record_length &&
         extent.length <= ref.record_length - ref.delta;
}

void EncodeDentryValue(const DentryValue& value, Encoder& out) {
  out.Put(static_cast<uint8_t>(value.kind));
  out.Put(Raw(value.ino));
}

DentryValue DecodeDentryValue(Decoder& in) {
  DentryValue value;
  const auto kind = in.Get<uint8_t>();
  if (kind <= static_cast<uint8_t>(DentryKind::kInode)) {
    value.kind = static_cast<DentryKind>(kind);
  } else {
    in.SetBad();
  }
  value.ino = Ino{in.Get<uint64_t>()};
  if (!IsSound(value)) in.SetBad();
  return value;
}

void EncodeRecord(const std::optional<InodeRecord>& record, Encoder& out) {
  out.Put(static_cast<uint8_t>(record.has_value()));
  if (!record) return;
  EncodeAttr(record->attr, out);
  EncodeOrigin(record->base, record->symlink, out);
}

std::optional<InodeRecord> DecodeRecord(Decoder& in) {
  if (!in.GetBool()) return std::nullopt;
  InodeRecord record;
  record.attr = DecodeAttr(in);
  DecodeOrigin(in, record.base, record.symlink);
  return record;
}

void EncodeExtents(const std::vector<Extent>& extents, Encoder& out) {
  out.Put(static_cast<uint32_t>(extents.size()));
  for (const Extent& extent : extents) EncodeExtent(extent, out);
}

std::vector<Extent> DecodeExtents(Decoder& in) {
  const auto count = in.Get<uint32_t>();
  std::vector<Extent> extents;
  // A damaged count must not reserve more than the input can hold.
  if (count > in.remaining() / kExtentSize) {
    in.SetBad();
    return extents;
  }
  extents.reserve(count);
  for (uint32_t i = 0; i < count; ++i) extents.push_back(DecodeExtent(in));
  return extents;
}

void EncodeOptional(const std::optional<std::string>& value, Encoder& out) {
  out.Put(static_cast<uint8_t>(value.has_value()));
  if (value) out.PutString(*value);
}

std::optional<std::string> DecodeOptional(Decoder& in) {
  if (!in.GetBool()) return std::nullopt;
  return std::string(in.GetString());
}

std::string DecodeXattrName(Decoder& in) {
  std::string name(in.GetString());
  if (!IsXattrName(name)) in.SetBad();
  return name;
}

void EncodeEdit(const Edit& edit, Encoder& out) {
  out.Put(static_cast<uint8_t>(edit.index() + 1));
  std::visit(Overloaded{
                 [&](const InodeEdit& e) {
                   out.Put(Raw(e.ino));
                   EncodeRecord(e.before, out);
                   EncodeRecord(e.after, out);
                 },
                 [&](const AttrEdit& e) {
                   out.Put(Raw(e.ino));
                   EncodeAttr(e.before, out);
                   EncodeAttr(e.after, out);
                 },
                 [&](const DentryEdit& e) {
                   out.Put(Raw(e.parent));
                   out.PutString(e.name);
                   EncodeDentryValue(e.before, out);
                   EncodeDentryValue(e.after, out);
                 },
                 [&](const ExtentEdit& e) {
                   out.Put(Raw(e.ino));
                   EncodeExtents(e.before, out);
                   EncodeExtents(e.after, out);
                 },
                 [&](const XattrEdit& e) {
                   out.Put(Raw(e.ino));
                   out.PutString(e.name);
                   EncodeOptional(e.before, out);
                   EncodeOptional(e.after, out);
                 },
             },
             edit);
}

// Braced initialisers are evaluated in order, so fields are read as written.
Edit DecodeEdit(Decoder& in) {
  switch (in.Get<uint8_t>()) {
    case 1:
      return InodeEdit{DecodeIno(in), DecodeRecord(in), DecodeRecord(in)};
    case 2:
      return AttrEdit{DecodeIno(in), DecodeAttr(in), DecodeAttr(in)};
    case 3:
      return DentryEdit{DecodeIno(in), DecodeName(in), DecodeDentryValue(in),
                        DecodeDentryValue(in)};
    case 4:
      return ExtentEdit{DecodeIno(in), DecodeExtents(in), DecodeExtents(in)};
    case 5:
      return XattrEdit{DecodeIno(in), DecodeXattrName(in), DecodeOptional(in),
                       DecodeOptional(in)};
    default:
      in.SetBad();
      return {};
  }
}

}  // namespace

bool IsInodeNumber(Ino ino) {
  return ino != kNoIno && Raw(ino) < kStoredNumberMax;
}

bool IsSound(const DentryValue& value) {
  return value.kind == DentryKind::kInode ? IsInodeNumber(value.ino)
                                          : value.ino == kNoIno;
}

bool IsXattrName(std::string_view name) {
  return !name.empty() && name.size() <= kStoredNameMax &&
         name.find('\0') == std::string_view::npos;
}

uint32_t ModeBits(FileType type) {
  for (const TypeMode& entry : kTypeModes) {
    if (entry.type == type) return entry.mode;
  }
  return 0;
}

std::optional<FileType> TypeOfMode(uint32_t mode) {
  for (const TypeMode& entry : kTypeModes) {
    if (entry.mode == (mode & S_IFMT)) return entry.type;
  }
  return std::nullopt;
}

bool IsModeOfObject(uint32_t mode) {
  return TypeOfMode(mode) && (mode & ~(S_IFMT | 07777U)) == 0;
}

Extent Clip(const Extent& extent, uint64_t from, uint64_t to) {
  Extent part = extent;
  part.offset = std::max(extent.offset, from);
  part.length = std::min(extent.end(), to) - part.offset;
  assert(part.length > 0 && part.length <= extent.length);
  if (part.content.segment != 0) {
    part.content.delta += static_cast<uint32_t>(part.offset - extent.offset);
  }
  return part;
}

Edit Inverse(const Edit& edit) {
  Edit inverse = edit;
  std::visit([](auto& e) { std::swap(e.before, e.after); }, inverse);
  return inverse;
}

std::string_view OpName(Op op) { return NameIn(kOpNames, op); }

std::optional<Op> OpFromName(std::string_view name) {
  return ValueIn(kOpNames, name);
}

void EncodeTime(Timestamp time, Encoder& out) {
  out.Put(time.sec);
  out.Put(time.nsec);
}

Timestamp DecodeTime(Decoder& in) {
  Timestamp time;
  time.sec = in.Get<int64_t>();
  time.nsec = in.Get<uint32_t>();
  if (time.nsec >= kNsecPerSec) in.SetBad();
  return time;
}

void EncodeAttr(const Attr& attr, Encoder& out) {
  out.Put(static_cast<uint8_t>(attr.type));
  out.Put(static_cast<uint8_t>(attr.xattrs_owned ? kXattrsOwnedFlag : 0));
  out.Put(attr.mode);
  out.Put(attr.uid);
  out.Put(attr.gid);
  out.Put(attr.nlink);
  out.Put(attr.rdev);
  out.Put(attr.size);
  out.Put(attr.base_limit);
  out.Put(attr.own_segment);
  EncodeTime(attr.atime, out);
  EncodeTime(attr.mtime, out);
  EncodeTime(attr.ctime, out);
}

Attr DecodeAttr(Decoder& in) {
  Attr attr;
  attr.type = static_cast<FileType>(in.Get<uint8_t>());
  if (ModeBits(attr.type) == 0) in.SetBad();
  const auto flags = in.Get<uint8_t>();
  if ((flags & ~kXattrsOwnedFlag) != 0) in.SetBad();
  attr.xattrs_owned = (flags & kXattrsOwnedFlag) != 0;
  attr.mode = in.Get<uint32_t>();
  attr.uid = in.Get<uint32_t>();
  attr.gid = in.Get<uint32_t>();
  attr.nlink = in.Get<uint32_t>();
  attr.rdev = in.Get<uint64_t>();
  attr.size = in.Get<uint64_t>();
  attr.base_limit = in.Get<uint64_t>();
  attr.own_segment = in.Get<uint32_t>();
  attr.atime = DecodeTime(in);
  attr.mtime = DecodeTime(in);
  attr.ctime = DecodeTime(in);
  if ((attr.mode & ~07777U) != 0 || attr.size > kStoredNumberMax) {
    in.SetBad();
  }
  return attr;
}

void EncodeExtent(const Extent& extent, Encoder& out) {
  out.Put(extent.offset);
  out.Put(extent.length);
  out.Put(extent.content.segment);
  out.Put(extent.content.record_length);
  out.Put(extent.content.record_position);
  out.Put(extent.content.checksum);
  out.Put(extent.content.delta);
}

Extent DecodeExtent(Decoder& in) {
  Extent extent;
  extent.offset = in.Get<uint64_t>();
  extent.length = in.Get<uint64_t>();
  extent.content.segment = in.Get<uint32_t>();
  extent.content.record_length = in.Get<uint32_t>();
  extent.content.record_position = in.Get<uint64_t>();
  extent.content.checksum = in.Get<uint64_t>();
  extent.content.delta = in.Get<uint32_t>();
  if (!IsSound(extent)) in.SetBad();
  return extent;
}

void EncodeOrigin(const std::optional<BaseOrigin>& origin,
                  const std::string& symlink, Encoder& out) {
  out.Put(static_cast<uint8_t>(origin.has_value()));
  if (origin) {
    out.PutString(origin->path);
    out.Put(origin->dev);
    out.Put(origin->ino);
    out.Put(origin->size);
    out.Put(origin->mode);
    out.Put(origin->nlink);
    out.Put(origin->uid);
    out.Put(origin->gid);
    EncodeTime(origin->mtime, out);
    EncodeTime(origin->ctime, out);
  }
  out.PutString(symlink);
}

void DecodeOrigin(Decoder& in, std::optional<BaseOrigin>& origin,
                  std::string& symlink) {
  origin.reset();
  if (in.GetBool()) {
    origin.emplace();
    origin->path = in.GetString();
    origin->dev = in.Get<uint64_t>();
    origin->ino = in.Get<uint64_t>();
    origin->size = in.Get<uint64_t>();
    origin->mode = in.Get<uint32_t>();
    origin->nlink = in.Get<uint32_t>();
    origin->uid = in.Get<uint32_t>();
    origin->gid = in.Get<uint32_t>();
    origin->mtime = DecodeTime(in);
    origin->ctime = DecodeTime(in);
    if (!IsPathBelow(origin->path) || origin->size > kStoredNumberMax ||
        !IsModeOfObject(origin->mode)) {
      in.SetBad();
    }
  }
  symlink = in.GetString();
  if (symlink.size() > kStoredTargetMax ||
      symlink.find('\0') != std::string::npos) {
    in.SetBad();
  }
}

void EncodeChange(const Change& change, Bytes& out) {
  Encoder encoder(out);
  encoder.Put(static_cast<uint8_t>(change.op));
  encoder.Put(change.result);
  EncodeTime(change.time, encoder);
  encoder.Put(change.pid);
  encoder.Put(change.uid);
  encoder.PutString(change.exe);
  encoder.PutString(change.path);
  encoder.PutString(change.new_path);
  encoder.Put(change.offset);
  encoder.Put(change.length);
  encoder.Put(static_cast<uint32_t>(change.edits.size()));
  for (const Edit& edit : change.edits) EncodeEdit(edit, encoder);
  if (change.repeats > 1) {
    encoder.Put(kRepeatsMark);
    encoder.Put(change.repeats);
    EncodeTime(change.first, encoder);
  }
  if (change.policy == 0) return;
  encoder.Put(change.policy);
  encoder.PutString(change.rule);
  const bool has_more = !change.because.empty();
  if (change.reason.empty() && change.suggest.empty() && !has_more) return;
  encoder.PutString(change.reason);
  encoder.PutString(change.suggest);
  if (has_more) encoder.PutString(change.because);
}

Result<Change> DecodeChange(ByteSpan in) {
  Decoder decoder(in);
  Change change;
  change.op = static_cast<Op>(decoder.Get<uint8_t>());
  if (OpName(change.op) == "unknown") decoder.SetBad();
  change.result = decoder.Get<int32_t>();
  change.time = DecodeTime(decoder);
  change.pid = decoder.Get<uint32_t>();
  change.uid = decoder.Get<uint32_t>();
  change.exe = DecodeText(decoder);
  change.path = DecodeText(decoder);
  change.new_path = DecodeText(decoder);
  change.offset = decoder.Get<uint64_t>();
  change.length = decoder.Get<uint64_t>();
  const auto edits = decoder.Get<uint32_t>();
  // The number may be damaged.
  change.edits.reserve(std::min(edits, uint32_t{16}));
  for (uint32_t i = 0; i < edits && decoder.ok(); ++i) {
    change.edits.push_back(DecodeEdit(decoder));
  }
  if (decoder.ok() && decoder.remaining() != 0) {
    change.policy = decoder.Get<uint64_t>();
    if (change.policy == kRepeatsMark) {
      change.repeats = decoder.Get<uint64_t>();
      change.first = DecodeTime(decoder);
      if (change.repeats < 2) decoder.SetBad();
      if (decoder.remaining() != 0) change.policy = decoder.Get<uint64_t>();
    }
    if (change.policy != 0) {
      change.rule = decoder.GetString();
    } else if (change.repeats == 1 || decoder.remaining() != 0) {
      decoder.SetBad();
    }
  }
  if (decoder.ok() && decoder.remaining() != 0) {
    change.reason = decoder.GetString();
    change.suggest = decoder.GetString();
  }
  if (decoder.ok() && decoder.remaining() != 0) {
    change.because = DecodeText(decoder);
    if (change.because.empty()) decoder.SetBad();
  }
  if (!decoder.ok() || decoder.remaining() != 0) {
    return Fail(EBADMSG, "damaged change record");
  }
  return change;
}

Status CheckNames(const Change& change) {
  constexpr size_t kMaxName = 255;
  for (const Edit& edit : change.edits) {
    const std::string* name = nullptr;
    if (const auto* dentry = std::get_if<DentryEdit>(&edit)) {
      name = &dentry->name;
    } else if (const auto* xattr = std::get_if<XattrEdit>(&edit)) {
      name = &xattr->name;
    }
    if (name != nullptr && name->size() > kMaxName) {
      return Fail(ENAMETOOLONG, "name of " + std::to_string(name->size()) +
                                    " bytes in a change");
    }
  }
  return {};
}

void Apply(const Edit& edit, State& state) {
  std::visit(
      Overloaded{
          [&](const InodeEdit& e) { state.SetInode(e.ino, e.after); },
          [&](const AttrEdit& e) { state.SetAttr(e.ino, e.after); },
          [&](const DentryEdit& e) {
            state.SetDentry(e.parent, e.name, e.after);
          },
          [&](const ExtentEdit& e) {
            for (const Extent& extent : e.before) {
              state.EraseExtent(e.ino, extent);
            }
            for (const Extent& extent : e.after) state.PutExtent(e.ino, extent);
          },
          [&](const XattrEdit& e) { state.SetXattr(e.ino, e.name, e.after); },
      },
      edit);
}

void Apply(const Change& change, State& state) {
  for (const Edit& edit : change.edits) Apply(edit, state);
}

}  // namespace txfs

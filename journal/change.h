#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

enum class FileType : uint8_t {
  kRegular = 1,
  kDirectory = 2,
  kSymlink = 3,
  kFifo = 4,
  kSocket = 5,
  kCharDevice = 6,
  kBlockDevice = 7,
};

/// Whether an inode of the overlay may have the number: neither 0 nor so large
/// that none comes after it.
[[nodiscard]] bool IsInodeNumber(Ino ino);
/// Whether an extended attribute may have the name, or a row for one.
[[nodiscard]] bool IsXattrName(std::string_view name);

/// The S_IF* bits of `type`.
[[nodiscard]] uint32_t ModeBits(FileType type);
/// The type in the S_IF* bits of `mode`; none for bits that mean nothing.
[[nodiscard]] std::optional<FileType> TypeOfMode(uint32_t mode);
/// Whether `mode` has a type, permission bits, and no other bits.
[[nodiscard]] bool IsModeOfObject(uint32_t mode);

/// What can change about an inode while it lives. Fixed size on disk.
struct Attr {
  FileType type = FileType::kRegular;
  bool xattrs_owned =
      false;          ///< the xattr table is complete, the base's are hidden
  uint32_t mode = 0;  ///< permission bits, 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 0;
  uint64_t rdev = 0;
  uint64_t size = 0;  ///< bytes
  uint64_t base_limit =
      0;  ///< bytes [0, base_limit) come from the base file, where no extent is
  uint32_t own_segment =
      0;  ///< spool segment in which position = file offset; 0: none
  Timestamp atime, mtime, ctime;

  bool operator==(const Attr&) const = default;
};

/// The base object an inode came from, as it was when first touched.
struct BaseOrigin {
  std::string path;  ///< relative to the base root; "" is the root itself
  uint64_t dev = 0;  ///< 0: the device of the base root, else the st_dev
  uint64_t ino = 0;
  uint64_t size = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  Timestamp mtime, ctime;

  bool operator==(const BaseOrigin&) const = default;
};

/// An inode's record: attributes, and what never changes.
struct InodeRecord {
  Attr attr;
  std::optional<BaseOrigin> base;
  std::string symlink;  ///< target, when attr.type is kSymlink

  bool operator==(const InodeRecord&) const = default;
};

/// A part of a spool record. Segment 0 is a hole: reads as zeros, the rest of
/// the fields are 0.
struct ContentRef {
  uint32_t segment = 0;
  uint32_t record_length = 0;    ///< bytes of the whole record
  uint64_t record_position = 0;  ///< where the record starts in its segment
  uint64_t checksum = 0;         ///< xxh3-64 of the whole record
  uint32_t delta = 0;            ///< where this part starts in the record

  bool operator==(const ContentRef&) const = default;
};

/// Bytes [offset, offset + length) of a file.
struct Extent {
  uint64_t offset = 0;
  uint64_t length = 0;
  ContentRef content;

  [[nodiscard]] uint64_t end() const { return offset + length; }
  bool operator==(const Extent&) const = default;
};

/// The part of `extent` within [from, to), which must overlap it.
[[nodiscard]] Extent Clip(const Extent& extent, uint64_t from, uint64_t to);

enum class DentryKind : uint8_t { kAbsent = 0, kWhiteout = 1, kInode = 2 };

/// What the upper says about a name: nothing, that it is hidden, or which inode
/// it is.
struct DentryValue {
  DentryKind kind = DentryKind::kAbsent;
  Ino ino = kNoIno;

  bool operator==(const DentryValue&) const = default;
};

/// An inode has a number, what is none has 0.
[[nodiscard]] bool IsSound(const DentryValue& value);

struct InodeEdit {
  Ino ino = kNoIno;
  std::optional<InodeRecord> before, after;
  bool operator==(const InodeEdit&) const = default;
};
struct AttrEdit {
  Ino ino = kNoIno;
  Attr before, after;
  bool operator==(const AttrEdit&) const = default;
};
struct DentryEdit {
  Ino parent = kNoIno;
  std::string name;
  DentryValue before, after;
  bool operator==(const DentryEdit&) const = default;
};
/// Replaces whole extents: every one of `before` goes, every one of `after`
/// comes.
struct ExtentEdit {
  Ino ino = kNoIno;
  std::vector<Extent> before, after;
  bool operator==(const ExtentEdit&) const = default;
};
struct XattrEdit {
  Ino ino = kNoIno;
  std::string name;
  std::optional<std::string> before, after;
  bool operator==(const XattrEdit&) const = default;
};
using Edit =
    std::variant<InodeEdit, AttrEdit, DentryEdit, ExtentEdit, XattrEdit>;

/// `edit` with before and after swapped.
[[nodiscard]] Edit Inverse(const Edit& edit);

enum class Op : uint8_t {
  kCreate = 1,
  kMkdir = 2,
  kMknod = 3,
  kSymlink = 4,
  kLink = 5,
  kUnlink = 6,
  kRmdir = 7,
  kRename = 8,
  kExchange = 9,
  kWrite = 10,
  kTruncate = 11,
  kAllocate = 12,
  kChmod = 13,
  kChown = 14,
  kUtimens = 15,
  kSetxattr = 16,
  kRemovexattr = 17,
  kReap = 18,  ///< internal: an unlinked inode was forgotten; never shown to
               ///< the user
  kSavepoint = 19,  ///< `path` is its name, its LSN the mark; no edits
  kRollback = 20,   ///< to the savepoint of name `path` and LSN `offset`: the
                    ///< changes in between do not count; no edits
  kCommit = 21,     ///< `path` is the id of a commit of a part: the edits take
                    ///< that out of the transaction, which has no savepoints
                    ///< any more
  kDiscard = 22,    ///< the same for a part that was thrown away
  kFollow = 23,     ///< internal: what the transaction did nothing to became
                    ///< what the base has: a touched file, the mode of a
                    ///< directory, a noted name; never shown to the user
};

/// Whether users are told nothing of it.
[[nodiscard]] constexpr bool IsInternal(Op op) {
  return op == Op::kReap || op == Op::kFollow;
}

/// "create", "rename", ... as `txfs log` prints it and `--op` takes it.
[[nodiscard]] std::string_view OpName(Op op);
[[nodiscard]] std::optional<Op> OpFromName(std::string_view name);

/// The user where it is not known; nobody has it (chown(2)).
inline constexpr uint32_t kNoUid = 0xFFFFFFFF;

/// One mutation: who did what, and the edits that do it and undo it.
struct Change {
  Op op = Op::kCreate;
  int32_t result = 0;  ///< 0, or the errno with which it was refused; then
                       ///< there are no edits
  Timestamp time;
  uint32_t pid = 0;
  uint32_t uid = 0;  ///< or kNoUid
  std::string exe;   ///< path of the caller's executable; empty when unknown
  std::string path;  ///< relative to the workspace root
  std::string new_path;  ///< rename, exchange, link: the other path
  uint64_t offset = 0;   ///< write, truncate, allocate
  uint64_t length = 0;
  std::vector<Edit> edits;
  uint64_t policy = 0;  ///< Policy::hash of the one that judged it; 0: none
  std::string rule;     ///< id of the rule or limit that refused it, or had it
                        ///< noted, or of the rule that asked and was answered
                        ///< with yes
  std::string reason, suggest;  ///< of a rule that refused it, for people
  std::string because;   ///< the path that this rule is about, if none of those
  uint64_t repeats = 1;  ///< operations that it stands for, in the log only
  Timestamp first = {};  ///< time of the first of them; of one alone zero

  bool operator==(const Change&) const = default;
};

/// Encodes per docs/format.md, "Change".
void EncodeChange(const Change& change, Bytes& out);
/// EBADMSG when the bytes are no change. Consumes all of `in`.
Result<Change> DecodeChange(ByteSpan in);

void EncodeTime(Timestamp time, Encoder& out);
Timestamp DecodeTime(Decoder& in);
void EncodeAttr(const Attr& attr, Encoder& out);
Attr DecodeAttr(Decoder& in);
void EncodeExtent(const Extent& extent, Encoder& out);
Extent DecodeExtent(Decoder& in);
void EncodeOrigin(const std::optional<BaseOrigin>& origin,
                  const std::string& symlink, Encoder& out);
void DecodeOrigin(Decoder& in, std::optional<BaseOrigin>& origin,
                  std::string& symlink);

/// What edits are applied to: the tree in memory, the tables on disk. Cannot
/// fail: a state that can, remembers its error and reports it at the end of its
/// batch.
class State {
 public:
  virtual ~State() = default;
  virtual void SetInode(Ino ino, const std::optional<InodeRecord>& record) = 0;
  virtual void SetAttr(Ino ino, const Attr& attr) = 0;
  virtual void SetDentry(Ino parent, const std::string& name,
                         const DentryValue& value) = 0;
  virtual void EraseExtent(Ino ino, const Extent& extent) = 0;
  virtual void PutExtent(Ino ino, const Extent& extent) = 0;
  virtual void SetXattr(Ino ino, const std::string& name,
                        const std::optional<std::string>& value) = 0;
};

/// The one place where edits take effect, live, in recovery and in rollback.
void Apply(const Edit& edit, State& state);
void Apply(const Change& change, State& state);

}  // namespace txfs

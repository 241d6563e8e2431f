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

/// Whether `ino` is a valid inode number of the overlay: not 0, and less than
/// kStoredNumberMax.
[[nodiscard]] bool IsInodeNumber(Ino ino);
/// Whether `name` is a valid name of an extended attribute: 1 to 255 bytes, no
/// NUL.
[[nodiscard]] bool IsXattrName(std::string_view name);

/// The S_IF* bits of `type`.
[[nodiscard]] uint32_t ModeBits(FileType type);
/// The type in the S_IF* bits of `mode`; none if they are invalid.
[[nodiscard]] std::optional<FileType> TypeOfMode(uint32_t mode);
/// Whether `mode` has a type, permission bits, and no other bits.
[[nodiscard]] bool IsModeOfObject(uint32_t mode);

/// The attributes of an inode. Fixed size on disk.
struct Attr {
  FileType type = FileType::kRegular;
  bool xattrs_owned = false;  ///< the xattr table is complete; the xattrs of
                              ///< the base are hidden
  uint32_t mode = 0;          ///< permission bits, 07777
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 0;
  uint64_t rdev = 0;
  uint64_t size = 0;  ///< bytes
  uint64_t base_limit =
      0;  ///< where no extent is, bytes [0, base_limit) come from the base file
  uint32_t own_segment =
      0;  ///< spool segment in which position = file offset; 0: none
  Timestamp atime, mtime, ctime;

  bool operator==(const Attr&) const = default;
};

/// The base object an inode came from, as it was when first touched.
struct BaseOrigin {
  std::string path;  ///< relative to the base root; "" is the root itself
  uint64_t dev = 0;  ///< st_dev; 0: that of the base root
  uint64_t ino = 0;
  uint64_t size = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  Timestamp mtime, ctime;

  bool operator==(const BaseOrigin&) const = default;
};

/// The record of an inode: attributes, base object and symlink target.
struct InodeRecord {
  Attr attr;
  std::optional<BaseOrigin> base;
  std::string symlink;  ///< target, when attr.type is kSymlink

  bool operator==(const InodeRecord&) const = default;
};

/// Part of a spool record. Segment 0 is a hole, which reads as zeros; the other
/// fields are then 0.
struct ContentRef {
  uint32_t segment = 0;
  uint32_t record_length = 0;    ///< bytes of the whole record
  uint64_t record_position = 0;  ///< where the record starts in its segment
  uint64_t checksum = 0;         ///< xxh3-64 of the whole record
  uint32_t delta = 0;            ///< offset of this part in the record, bytes

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

/// What the upper has for a name: nothing, a whiteout or an inode.
struct DentryValue {
  DentryKind kind = DentryKind::kAbsent;
  Ino ino = kNoIno;

  bool operator==(const DentryValue&) const = default;
};

/// Whether `ino` fits `kind`: a valid inode number for kInode, else 0.
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
/// Replaces whole extents: removes those in `before`, adds those in `after`.
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
  kReap = 18,  ///< internal, never shown to the user: an unlinked inode was
               ///< dropped. Only earlier versions wrote it
  kSavepoint = 19,  ///< `path`: the savepoint's name; `new_path`: of the begin
                    ///< of a call, its mark (EncodeMark); no edits
  /// To the savepoint with the name `path` and the LSN `offset`; the changes in
  /// between no longer count. No edits.
  kRollback = 20,
  kCommit = 21,  ///< `path`: the id of a partial commit. The edits remove its
                 ///< changes from the transaction, which then has no savepoints
  kDiscard = 22,  ///< the same for a partial discard; no `path`
  kFollow = 23,   ///< internal, never shown to the user: the base's state
                  ///< replaces what the transaction did not change: a touched
                  ///< file, the mode of a directory, a recorded path
  kRead = 24,     ///< only as a denial: a file was opened for reading
  kRevert = 25,   ///< `path`: the savepoint of a call; `length`: the number of
                  ///< paths. The edits take back what the call changed
};

/// Whether `op` is never shown to users.
[[nodiscard]] constexpr bool IsInternal(Op op) {
  return op == Op::kReap || op == Op::kFollow;
}

/// "create", "rename", ... as `txfs log` prints it and `--op` takes it.
[[nodiscard]] std::string_view OpName(Op op);
[[nodiscard]] std::optional<Op> OpFromName(std::string_view name);

/// The user is unknown. No user has this id: to chown(2) it means "no change".
inline constexpr uint32_t kNoUid = 0xFFFFFFFF;

/// One mutation: the process, the operation, and edits that can be undone.
struct Change {
  Op op = Op::kCreate;
  int32_t result = 0;  ///< 0, or the errno of a refusal; then edits is empty
  Timestamp time;
  uint32_t pid = 0;
  uint32_t uid = 0;  ///< or kNoUid
  std::string exe;   ///< path of the caller's executable; empty when unknown
  std::string path;  ///< relative to the workspace root
  std::string new_path;  ///< rename, exchange, link: the other path
  uint64_t offset = 0;   ///< write, truncate, allocate
  uint64_t length = 0;
  std::vector<Edit> edits;
  uint64_t policy = 0;  ///< Policy::hash of the policy that judged it; 0: none
  /// Id of the rule or limit that refused or audited it, or of the ask or hook
  /// rule whose question was answered with yes.
  std::string rule;
  std::string reason, suggest;  ///< texts of the rule that refused it
  std::string because;   ///< the path that the rule is about, if it is neither
                         ///< `path` nor `new_path`
  uint64_t repeats = 1;  ///< merged operations that this change stands for;
                         ///< more than 1 only in the log
  Timestamp first = {};  ///< time of the first of them; 0 unless merged

  bool operator==(const Change&) const = default;
};

/// Encodes per docs/format.md, "Change".
void EncodeChange(const Change& change, Bytes& out);
/// EBADMSG unless `in` is one encoded change and nothing else.
Result<Change> DecodeChange(ByteSpan in);
/// ENAMETOOLONG if an edit has a name of more than 255 bytes, which is no key
/// of the tables.
Status CheckNames(const Change& change);

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

/// A target of edits, such as the tree in memory or the tables on disk. The
/// calls do not fail: Tables keeps its first error and reports it at the end of
/// the batch.
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

/// Applies edits to `state`: in live operations, in recovery and in fsck.
void Apply(const Edit& edit, State& state);
void Apply(const Change& change, State& state);

}  // namespace txfs

#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "journal/change.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/types.h"

namespace txfs {

/// What a step does (docs/recovery.md, "Steps").
enum class StepKind : uint8_t {
  kMove = 1,      ///< rename object `ino` from `from` to `to`, which is free
  kExchange = 2,  ///< swap `ino`, at `from` in the vault, and `other`, at `to`
  kLink = 3,      ///< give object `ino`, at `from`, the name `to`, too
  kUnlink = 4,    ///< take the name `to` of `ino` away; `from` stays
  kPatch = 5,     ///< write `after` into file `ino` at `to`
  kAttributes = 6,  ///< give object `ino`, at `to`, the attributes `set_after`
};

/// A path in the base, or a name in the vault.
struct Spot {
  bool vault = false;
  std::string path;
  std::string mount;  ///< vault: on which filesystem; see BaseMounts

  [[nodiscard]] static Spot Base(std::string path) {
    return {false, std::move(path), {}};
  }
  [[nodiscard]] static Spot Vault(std::string name, std::string mount) {
    return {true, std::move(name), std::move(mount)};
  }
  bool operator==(const Spot&) const = default;
};

/// Content that a patch writes: `ranges` of the vault's file `name`, at the
/// same offsets, into a file that is cut to `keep` bytes and then set to
/// `size`.
struct Delta {
  std::string name;
  uint64_t keep = 0;
  uint64_t size = 0;
  std::vector<Range> ranges;

  bool operator==(const Delta&) const = default;
};

/// Makes of `out`, which was read from `offset` of the patched file (zeros
/// beyond its end), the content that `delta` writes there. `read` fills its
/// span from an offset of the vault's file, completely or with an error.
Status ApplyDelta(
    const Delta& delta, uint64_t offset, MutableByteSpan out,
    const std::function<Status(uint64_t from, MutableByteSpan part)>& read);

/// What a commit sets about an object besides its content.
struct ObjectAttributes {
  FileType type = FileType::kRegular;
  uint32_t mode = 0;  ///< permission bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  Timestamp atime, mtime;
  /// All user.* attributes there are to be; none: they stay as they are.
  std::optional<std::map<std::string, std::string>> xattrs;

  bool operator==(const ObjectAttributes&) const = default;
};

[[nodiscard]] ObjectAttributes AttributesOf(const struct stat& st);

/// One change of the base that can be repeated and inverted.
struct CommitStep {
  StepKind kind = StepKind::kMove;
  Spot from, to;
  uint64_t ino = 0;     ///< st_ino of the object; 0 only in kAttributes of a
                        ///< plan that an earlier version wrote
  uint64_t other = 0;   ///< kExchange: st_ino of the object that goes
  uint64_t parent = 0;  ///< kLink, kUnlink with `to` in the base: st_ino of its
                        ///< directory, lest a repeated run takes another
                        ///< that has its path by now
  std::optional<Delta> before, after;  ///< kPatch: both
  /// kAttributes: `set_before` are those of `from` when the step is undone;
  /// none: the object is not there then. So for `set_after`.
  std::optional<ObjectAttributes> set_before, set_after;

  bool operator==(const CommitStep&) const = default;
};

/// The steps of a commit in order: attributes last.
using CommitSteps = std::vector<CommitStep>;

/// The steps that take `steps` back.
[[nodiscard]] CommitSteps Inverse(const CommitSteps& steps);

/// Whether the step gives a file a set-user-ID or set-group-ID bit that it does
/// not have before. Those of a commit do not; those of an undo may.
[[nodiscard]] bool GainsPrivilege(const CommitStep& step);
/// Whether one of them does.
[[nodiscard]] bool GainPrivileges(const CommitSteps& steps);

/// Encodes per docs/format.md, "Commit plan". What the decoder rejects is
/// there, "What is rejected".
void EncodeSteps(const CommitSteps& steps, Encoder& out);
CommitSteps DecodeSteps(Decoder& in);

}  // namespace txfs

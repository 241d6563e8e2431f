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

/// The kind of a step (docs/recovery.md, "Steps").
enum class StepKind : uint8_t {
  kMove = 1,      ///< rename object `ino` from `from` to `to`, which is free
  kExchange = 2,  ///< swap `ino`, at `from` in the vault, and `other`, at `to`
  kLink = 3,      ///< give object `ino`, at `from`, the further name `to`
  kUnlink = 4,    ///< remove the name `to` of `ino`; `from` stays
  kPatch = 5,     ///< write `after` into file `ino` at `to`
  kAttributes = 6,  ///< give object `ino`, at `to`, the attributes `set_after`
};

/// A path in the base, or a name in the vault.
struct Spot {
  bool vault = false;
  std::string path;
  std::string mount;  ///< vault: the filesystem that has it; see BaseMounts

  [[nodiscard]] static Spot Base(std::string path) {
    return {false, std::move(path), {}};
  }
  [[nodiscard]] static Spot Vault(std::string name, std::string mount) {
    return {true, std::move(name), std::move(mount)};
  }
  bool operator==(const Spot&) const = default;
};

/// The content that a patch writes. The patched file is cut to `keep` bytes and
/// set to `size`, then gets `ranges` of the vault's file `name`, at the same
/// offsets.
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

/// The attributes of an object that a commit sets.
struct ObjectAttributes {
  FileType type = FileType::kRegular;
  uint32_t mode = 0;  ///< permission bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  Timestamp atime, mtime;
  /// All tracked attributes that the object gets; none: they stay as they are.
  std::optional<std::map<std::string, std::string>> xattrs;

  bool operator==(const ObjectAttributes&) const = default;
};

[[nodiscard]] ObjectAttributes AttributesOf(const struct stat& st);

/// A change of the base that can be repeated and inverted.
struct CommitStep {
  StepKind kind = StepKind::kMove;
  Spot from, to;
  uint64_t ino = 0;     ///< st_ino of the object; 0 only in a kAttributes step
                        ///< that an earlier version wrote
  uint64_t other = 0;   ///< kExchange: st_ino of the replaced object
  uint64_t parent = 0;  ///< kLink, kUnlink with `to` in the base, and kMove of
                        ///< a file with several names: st_ino of the directory
                        ///< in the base, so that a repeated run does not use
                        ///< another directory that meanwhile has the path
  std::optional<Delta> before, after;  ///< kPatch: both
  /// kAttributes: `set_after` is for `to`; none: the object does not exist
  /// then. `set_before` is the same for `from` when the step is undone.
  std::optional<ObjectAttributes> set_before, set_after;

  bool operator==(const CommitStep&) const = default;
};

/// The steps of a commit in order; kAttributes steps come last.
using CommitSteps = std::vector<CommitStep>;

/// The steps that undo `steps`.
[[nodiscard]] CommitSteps Inverse(const CommitSteps& steps);

/// Where the object that step `index`, a move, puts at its `to` is after all
/// steps: later ones may move a directory above it.
[[nodiscard]] Spot PlaceAfter(const CommitSteps& steps, size_t index);

/// Whether the step gives a file a set-user-ID or set-group-ID bit that it did
/// not have before. Steps of a commit do not; those of an undo may.
[[nodiscard]] bool GainsPrivilege(const CommitStep& step);
/// Whether one of the steps does.
[[nodiscard]] bool GainPrivileges(const CommitSteps& steps);

/// Encodes per docs/format.md, "Commit plan". The decoder rejects steps as in
/// its section "What is rejected".
void EncodeSteps(const CommitSteps& steps, Encoder& out);
CommitSteps DecodeSteps(Decoder& in);

}  // namespace txfs

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// What a process asks for; the names are those of `txfs log`.
enum class Op : uint8_t {
  kCreate,
  kMkdir,
  kMknod,
  kSymlink,
  kLink,
  kUnlink,
  kRmdir,
  kRename,
  kExchange,
  kWrite,
  kTruncate,
  kAllocate,
  kChmod,
  kChown,
  kUtimens,
  kSetxattr,
  kRemovexattr,
};
inline constexpr size_t kOps = 17;

/// What becomes of one name by it.
enum class Effect : uint8_t {
  kMake,        ///< it comes to be
  kRemove,      ///< it goes, or what it leads to is replaced
  kContent,     ///< the bytes that it leads to change
  kAttributes,  ///< mode, owner, times, extended attributes, number of links
};
inline constexpr size_t kEffects = 4;

/// Set of ops and effects. An event has its effect, and its op where that is
/// about the name: not where another name of the file is removed.
using Mask = uint32_t;
[[nodiscard]] constexpr Mask MaskOf(Effect effect) {
  return Mask{1} << static_cast<unsigned>(effect);
}
[[nodiscard]] constexpr Mask MaskOf(Op op) {
  return Mask{1} << (kEffects + static_cast<unsigned>(op));
}
/// Ops and effects by which names come to be, and nothing else.
inline constexpr Mask kMakingOps = MaskOf(Effect::kMake) | MaskOf(Op::kCreate) |
                                   MaskOf(Op::kMkdir) | MaskOf(Op::kMknod) |
                                   MaskOf(Op::kSymlink);
/// Beside the effect and op of a rename: the name itself goes elsewhere. What
/// is replaced by a rename is no such event.
inline constexpr Mask kMove = Mask{1} << (kEffects + kOps);
inline constexpr std::string_view kMoveName = "move";
inline constexpr Mask kEverything = (Mask{1} << (kEffects + kOps)) - 1;

[[nodiscard]] std::string_view NameOf(Op op);
[[nodiscard]] std::string_view NameOf(Effect effect);
[[nodiscard]] std::optional<Op> OpNamed(std::string_view name);
[[nodiscard]] std::optional<Effect> EffectNamed(std::string_view name);
/// Their names, those of effects first; of everything, "all".
[[nodiscard]] std::vector<std::string_view> NamesOf(Mask mask);
/// What `op` does to the name it is about; of a rename, the old one.
[[nodiscard]] Effect MainEffect(Op op);

/// Where what a name leads to comes from.
enum class Layer : uint8_t {
  kBase,  ///< it was there when the transaction began
  kNew,   ///< it was made in the transaction, or is to be made
};

/// What a name leads to, or is made to lead to.
enum class Type : uint8_t {
  kFile,
  kDirectory,
  kSymlink,
  kOther,  ///< device, fifo, socket
};
inline constexpr size_t kTypes = 4;
[[nodiscard]] std::string_view NameOf(Type type);
[[nodiscard]] std::optional<Type> TypeNamed(std::string_view name);
/// What `op` makes or removes by itself; none: anything.
[[nodiscard]] std::optional<Type> TypeOf(Op op);

/// One name that a mutating operation is about to touch.
struct Event {
  Op op = Op::kWrite;
  Effect effect = Effect::kContent;
  std::string_view path;  ///< from the workspace root, bytes
  Layer layer = Layer::kBase;
  Type type = Type::kFile;
  /// When it comes or goes with a directory above it that is renamed: the path
  /// that it has after or before that. "": it is named itself.
  std::string_view other_end = {};
  bool moved = false;               ///< it goes elsewhere by a rename
  std::string_view exe;             ///< path of the program; "": not known
  std::optional<uint32_t> uid = 0;  ///< none: not known

  [[nodiscard]] Mask mask() const;
};

}  // namespace txfs::policy

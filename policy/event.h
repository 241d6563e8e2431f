#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// The operation that a process requests; the names are those in `txfs log`.
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
  kRead,  ///< opens a file for reading
};
inline constexpr size_t kOps = 18;

/// The effect of an operation on one name.
enum class Effect : uint8_t {
  kMake,        ///< the name is created
  kRemove,      ///< the name is removed, or its object is replaced
  kContent,     ///< the bytes of its file change
  kAttributes,  ///< mode, owner, times, extended attributes or link count
                ///< change
  kRead,        ///< its content is read; nothing changes
};
inline constexpr size_t kEffects = 5;

/// A set of ops and effects. An event has its effect. It also has its op,
/// except where the op is about another name: of a file that loses one of its
/// hard links.
using Mask = uint32_t;
[[nodiscard]] constexpr Mask MaskOf(Effect effect) {
  return Mask{1} << static_cast<unsigned>(effect);
}
[[nodiscard]] constexpr Mask MaskOf(Op op) {
  return Mask{1} << (kEffects + static_cast<unsigned>(op));
}
/// Ops and effects that only create names.
inline constexpr Mask kMakingOps = MaskOf(Effect::kMake) | MaskOf(Op::kCreate) |
                                   MaskOf(Op::kMkdir) | MaskOf(Op::kMknod) |
                                   MaskOf(Op::kSymlink);
/// The further bit of a rename's old name: the name moves. The event of the
/// name that a rename replaces does not have it.
inline constexpr Mask kMove = Mask{1} << (kEffects + kOps);
inline constexpr std::string_view kMoveName = "move";
inline constexpr Mask kReading = MaskOf(Effect::kRead) | MaskOf(Op::kRead);
/// Of all that changes something.
inline constexpr Mask kEverything =
    ((Mask{1} << (kEffects + kOps)) - 1) & ~kReading;

[[nodiscard]] std::string_view NameOf(Op op);
[[nodiscard]] std::string_view NameOf(Effect effect);
[[nodiscard]] std::optional<Op> OpNamed(std::string_view name);
[[nodiscard]] std::optional<Effect> EffectNamed(std::string_view name);
/// Their names, effects first; "all" for kEverything.
[[nodiscard]] std::vector<std::string_view> NamesOf(Mask mask);
/// The effect of `op` on the name that it is about; for a rename, the old name.
[[nodiscard]] Effect MainEffect(Op op);

/// Where the object of a name comes from.
enum class Layer : uint8_t {
  kBase,  ///< it existed when the transaction began
  kNew,   ///< the transaction made it, or will make it
  /// kNew, and a regular file without content before and after the operation.
  kEmpty,
};
/// Whether a condition on `layer` holds for an object of the layer `of`.
[[nodiscard]] constexpr bool Includes(Layer layer, Layer of) {
  return layer == of || (layer == Layer::kNew && of == Layer::kEmpty);
}
[[nodiscard]] std::string_view NameOf(Layer layer);
[[nodiscard]] std::optional<Layer> LayerNamed(std::string_view name);

/// The type of the object of a name.
enum class Type : uint8_t {
  kFile,
  kDirectory,
  kSymlink,
  kOther,  ///< device, fifo, socket
};
inline constexpr size_t kTypes = 4;
[[nodiscard]] std::string_view NameOf(Type type);
[[nodiscard]] std::optional<Type> TypeNamed(std::string_view name);
/// The type that `op` always makes or removes; none: any.
[[nodiscard]] std::optional<Type> TypeOf(Op op);

/// One name that a mutating operation will affect.
struct Event {
  Op op = Op::kWrite;
  Effect effect = Effect::kContent;
  std::string_view path;  ///< relative to the workspace root, bytes
  Layer layer = Layer::kBase;
  Type type = Type::kFile;
  /// For a name that moves with a directory above it: its path at the other end
  /// of the rename. "": the operation names it directly.
  std::string_view other_end = {};
  bool moved = false;               ///< a rename moves it elsewhere
  std::string_view exe;             ///< path of the program; "": unknown
  std::optional<uint32_t> uid = 0;  ///< none: unknown

  [[nodiscard]] Mask mask() const;
};

}  // namespace txfs::policy

#include "policy/event.h"

#include <algorithm>

namespace txfs::policy {
namespace {

struct OpRow {
  std::string_view name;
  Effect effect;
  std::optional<Type> type = {};
};

constexpr std::array<OpRow, kOps> kOpRows{{
    {"create", Effect::kMake, Type::kFile},
    {"mkdir", Effect::kMake, Type::kDirectory},
    {"mknod", Effect::kMake, Type::kOther},
    {"symlink", Effect::kMake, Type::kSymlink},
    {"link", Effect::kMake},
    {"unlink", Effect::kRemove},
    {"rmdir", Effect::kRemove, Type::kDirectory},
    {"rename", Effect::kRemove},
    {"exchange", Effect::kRemove},
    {"write", Effect::kContent},
    {"truncate", Effect::kContent},
    {"allocate", Effect::kContent},
    {"chmod", Effect::kAttributes},
    {"chown", Effect::kAttributes},
    {"utimens", Effect::kAttributes},
    {"setxattr", Effect::kAttributes},
    {"removexattr", Effect::kAttributes},
    {"read", Effect::kRead},
}};

constexpr std::array<std::string_view, kEffects> kEffectNames{
    "make", "remove", "content", "attributes", "read"};

constexpr std::array<std::string_view, 3> kLayerNames{"base", "new", "empty"};
constexpr std::array<std::string_view, kTypes> kTypeNames{"file", "directory",
                                                          "symlink", "other"};

const OpRow& RowOf(Op op) { return kOpRows.at(static_cast<size_t>(op)); }

}  // namespace

std::string_view NameOf(Op op) { return RowOf(op).name; }

std::string_view NameOf(Effect effect) {
  return kEffectNames.at(static_cast<size_t>(effect));
}

std::optional<Op> OpNamed(std::string_view name) {
  const auto* const row = std::ranges::find(kOpRows, name, &OpRow::name);
  if (row == kOpRows.end()) return std::nullopt;
  return static_cast<Op>(row - kOpRows.begin());
}

std::optional<Effect> EffectNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kEffectNames, name);
  if (found == kEffectNames.end()) return std::nullopt;
  return static_cast<Effect>(found - kEffectNames.begin());
}

std::string_view NameOf(Layer layer) {
  return kLayerNames.at(static_cast<size_t>(layer));
}

std::optional<Layer> LayerNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kLayerNames, name);
  if (found == kLayerNames.end()) return std::nullopt;
  return static_cast<Layer>(found - kLayerNames.begin());
}

std::string_view NameOf(Type type) {
  return kTypeNames.at(static_cast<size_t>(type));
}

std::optional<Type> TypeNamed(std::string_view name) {
  const auto* const found = std::ranges::find(kTypeNames, name);
  if (found == kTypeNames.end()) return std::nullopt;
  return static_cast<Type>(found - kTypeNames.begin());
}

std::optional<Type> TypeOf(Op op) { return RowOf(op).type; }

std::vector<std::string_view> NamesOf(Mask mask) {
  if (mask == kEverything) return {"all"};
  std::vector<std::string_view> names;
  for (size_t i = 0; i < kEffects; ++i) {
    const auto effect = static_cast<Effect>(i);
    if ((mask & MaskOf(effect)) != 0) names.push_back(NameOf(effect));
  }
  for (size_t i = 0; i < kOps; ++i) {
    const auto op = static_cast<Op>(i);
    if ((mask & MaskOf(op)) != 0) names.push_back(NameOf(op));
  }
  if ((mask & kMove) != 0) names.push_back(kMoveName);
  return names;
}

Effect MainEffect(Op op) { return RowOf(op).effect; }

Mask Event::mask() const {
  const bool is_of_another_name =
      effect == Effect::kAttributes && MainEffect(op) == Effect::kRemove;
  return MaskOf(effect) | (is_of_another_name ? 0 : MaskOf(op)) |
         (moved ? kMove : 0);
}

}  // namespace txfs::policy

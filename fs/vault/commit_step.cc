#include "fs/vault/commit_step.h"

#include <algorithm>
#include <span>

#include "fs/base/base_directory.h"
#include "fs/host/xattrs.h"
#include "fs/vault/vaults.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

/// Where a spot is: 0 the base, 1 the vault, or the vault on a mount.
constexpr uint8_t kOnMount = 2;

CommitStep Inverse(const CommitStep& step) {
  CommitStep inverse = step;
  switch (step.kind) {
    case StepKind::kMove:
    case StepKind::kAttributes:
      std::swap(inverse.from, inverse.to);
      break;
    case StepKind::kExchange:
      std::swap(inverse.ino, inverse.other);
      break;
    case StepKind::kLink:
      inverse.kind = StepKind::kUnlink;
      break;
    case StepKind::kUnlink:
      inverse.kind = StepKind::kLink;
      break;
    case StepKind::kPatch:
      break;
  }
  std::swap(inverse.before, inverse.after);
  std::swap(inverse.set_before, inverse.set_after);
  return inverse;
}

void EncodeSpot(const Spot& spot, Encoder& out) {
  const bool on_mount = spot.vault && !spot.mount.empty();
  out.Put(static_cast<uint8_t>(on_mount ? kOnMount : spot.vault));
  if (on_mount) out.PutString(spot.mount);
  out.PutString(spot.path);
}

Spot DecodeSpot(Decoder& in) {
  const auto where = in.Get<uint8_t>();
  Spot spot{.vault = where != 0, .path = {}, .mount = {}};
  if (where == kOnMount) spot.mount = in.GetString();
  spot.path = in.GetString();
  const bool means =
      where <= kOnMount && IsPathBelow(spot.mount) &&
      (where == kOnMount) == !spot.mount.empty() &&
      (spot.vault ? IsSlotName(spot.path) : IsPathBelow(spot.path));
  if (!means) in.SetBad();
  return spot;
}

/// The part of `out`, which is at `offset`, that is in `range`.
MutableByteSpan PartIn(Range range, uint64_t offset, MutableByteSpan out) {
  const uint64_t end = offset + out.size();
  const uint64_t from = std::clamp(range.from, offset, end);
  const uint64_t to = std::clamp(range.to, from, end);
  return out.subspan(from - offset, to - from);
}

template <class T, class EncodeOne>
void EncodeOptional(const std::optional<T>& value, Encoder& out,
                    EncodeOne encode) {
  out.Put(static_cast<uint8_t>(value.has_value()));
  if (value) encode(*value, out);
}

template <class DecodeOne>
auto DecodeOptional(Decoder& in, DecodeOne decode)
    -> std::optional<decltype(decode(in))> {
  if (!in.GetBool() || !in.ok()) return std::nullopt;
  return decode(in);
}

void EncodeDelta(const Delta& delta, Encoder& out) {
  out.PutString(delta.name);
  out.Put(delta.keep);
  out.Put(delta.size);
  out.Put(static_cast<uint32_t>(delta.ranges.size()));
  for (const Range& range : delta.ranges) {
    out.Put(range.from);
    out.Put(range.to);
  }
}

Delta DecodeDelta(Decoder& in) {
  Delta delta;
  delta.name = in.GetString();
  delta.keep = in.Get<uint64_t>();
  delta.size = in.Get<uint64_t>();
  const auto count = in.Get<uint32_t>();
  uint64_t end = 0;
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const auto from = in.Get<uint64_t>();
    const auto to = in.Get<uint64_t>();
    if (from >= to || from < end || to > delta.size) in.SetBad();
    end = to;
    delta.ranges.push_back({from, to});
  }
  if (!IsSlotName(delta.name) || delta.size > kStoredNumberMax ||
      delta.keep > kStoredNumberMax) {
    in.SetBad();
  }
  return delta;
}

void EncodeXattrs(const std::map<std::string, std::string>& xattrs,
                  Encoder& out) {
  out.Put(static_cast<uint32_t>(xattrs.size()));
  for (const auto& [name, value] : xattrs) {
    out.PutString(name);
    out.PutString(value);
  }
}

std::map<std::string, std::string> DecodeXattrs(Decoder& in) {
  std::map<std::string, std::string> xattrs;
  const auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    const std::string name(in.GetString());
    xattrs[name] = in.GetString();
    if (!IsTrackedXattr(name) || !IsXattrName(name)) in.SetBad();
  }
  return xattrs;
}

void EncodeAttributes(const ObjectAttributes& attributes, Encoder& out) {
  out.Put(static_cast<uint8_t>(attributes.type));
  out.Put(attributes.mode);
  out.Put(attributes.uid);
  out.Put(attributes.gid);
  EncodeTime(attributes.atime, out);
  EncodeTime(attributes.mtime, out);
  EncodeOptional(attributes.xattrs, out, EncodeXattrs);
}

ObjectAttributes DecodeAttributes(Decoder& in) {
  ObjectAttributes attributes;
  attributes.type = static_cast<FileType>(in.Get<uint8_t>());
  if (ModeBits(attributes.type) == 0) in.SetBad();
  attributes.mode = in.Get<uint32_t>();
  attributes.uid = in.Get<uint32_t>();
  attributes.gid = in.Get<uint32_t>();
  attributes.atime = DecodeTime(in);
  attributes.mtime = DecodeTime(in);
  attributes.xattrs = DecodeOptional(in, DecodeXattrs);
  if ((attributes.mode & ~07777U) != 0) in.SetBad();
  return attributes;
}

bool IsNameInBase(const Spot& spot) {
  return !spot.vault && !spot.path.empty();
}

bool IsName(const Spot& spot) { return spot.vault || !spot.path.empty(); }

/// Whether a step of its kind has these places and objects.
bool HasItsParts(const CommitStep& step) {
  const bool patch = step.kind == StepKind::kPatch;
  if (step.before.has_value() != patch || step.after.has_value() != patch) {
    return false;
  }
  const bool sets = step.set_before || step.set_after;
  if (step.kind == StepKind::kAttributes) {
    return sets && !step.from.vault && !step.to.vault;
  }
  if (sets || step.ino == 0) return false;
  switch (step.kind) {
    case StepKind::kPatch:
      return step.from == Spot() && IsNameInBase(step.to);
    case StepKind::kExchange:
      return step.from.vault && IsNameInBase(step.to) && step.other != 0;
    default:
      return IsName(step.from) && IsName(step.to);
  }
}

StepKind DecodeKind(Decoder& in) {
  const auto kind = in.Get<uint8_t>();
  const bool known = kind >= static_cast<uint8_t>(StepKind::kMove) &&
                     kind <= static_cast<uint8_t>(StepKind::kAttributes);
  if (known) return static_cast<StepKind>(kind);
  in.SetBad();
  return StepKind::kMove;
}

}  // namespace

Status ApplyDelta(
    const Delta& delta, uint64_t offset, MutableByteSpan out,
    const std::function<Status(uint64_t from, MutableByteSpan part)>& read) {
  std::ranges::fill(PartIn({delta.keep, UINT64_MAX}, offset, out),
                    std::byte{0});
  auto range = std::ranges::upper_bound(delta.ranges, offset, {}, &Range::to);
  for (; range != delta.ranges.end() && range->from < offset + out.size();
       ++range) {
    TRY(read(std::max(range->from, offset), PartIn(*range, offset, out)));
  }
  return {};
}

ObjectAttributes AttributesOf(const struct stat& st) {
  return {.type = TypeOfMode(st.st_mode).value_or(FileType::kRegular),
          .mode = st.st_mode & 07777,
          .uid = st.st_uid,
          .gid = st.st_gid,
          .atime = Timestamp::From(st.st_atim),
          .mtime = Timestamp::From(st.st_mtim)};
}

CommitSteps Inverse(const CommitSteps& steps) {
  CommitSteps inverse;
  inverse.reserve(steps.size());
  std::ranges::transform(steps.rbegin(), steps.rend(),
                         std::back_inserter(inverse),
                         [](const CommitStep& step) { return Inverse(step); });
  // A rename changes the times of directories, in this direction, too.
  std::ranges::stable_partition(inverse, [](const CommitStep& step) {
    return step.kind != StepKind::kAttributes;
  });
  return inverse;
}

Spot PlaceAfter(const CommitSteps& steps, size_t index) {
  Spot place = steps[index].to;
  for (const CommitStep& step : std::span(steps).subspan(index + 1)) {
    const bool moves = step.kind == StepKind::kMove &&
                       step.from.vault == place.vault &&
                       step.from.mount == place.mount &&
                       IsAtOrBelow(place.path, step.from.path);
    if (!moves) continue;
    const std::string below = place.path.substr(step.from.path.size());
    place = step.to;
    place.path += below;
  }
  return place;
}

bool GainsPrivilege(const CommitStep& step) {
  if (!step.set_after || step.set_after->type == FileType::kDirectory) {
    return false;
  }
  const uint32_t had = step.set_before ? step.set_before->mode : 0;
  return (step.set_after->mode & ~had & (S_ISUID | S_ISGID)) != 0;
}

bool GainPrivileges(const CommitSteps& steps) {
  return std::ranges::any_of(steps, GainsPrivilege);
}

void EncodeSteps(const CommitSteps& steps, Encoder& out) {
  out.Put(static_cast<uint32_t>(steps.size()));
  for (const CommitStep& step : steps) {
    out.Put(static_cast<uint8_t>(step.kind));
    EncodeSpot(step.from, out);
    EncodeSpot(step.to, out);
    out.Put(step.ino);
    out.Put(step.other);
    out.Put(step.parent);
    EncodeOptional(step.before, out, EncodeDelta);
    EncodeOptional(step.after, out, EncodeDelta);
    EncodeOptional(step.set_before, out, EncodeAttributes);
    EncodeOptional(step.set_after, out, EncodeAttributes);
  }
}

CommitSteps DecodeSteps(Decoder& in) {
  CommitSteps steps;
  const auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    CommitStep& step = steps.emplace_back();
    step.kind = DecodeKind(in);
    step.from = DecodeSpot(in);
    step.to = DecodeSpot(in);
    step.ino = in.Get<uint64_t>();
    step.other = in.Get<uint64_t>();
    step.parent = in.Get<uint64_t>();
    step.before = DecodeOptional(in, DecodeDelta);
    step.after = DecodeOptional(in, DecodeDelta);
    step.set_before = DecodeOptional(in, DecodeAttributes);
    step.set_after = DecodeOptional(in, DecodeAttributes);
    if (in.ok() && !HasItsParts(step)) in.SetBad();
  }
  return steps;
}

}  // namespace txfs

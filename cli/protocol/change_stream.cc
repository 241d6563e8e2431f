#include "cli/protocol/change_stream.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "journal/change.h"

namespace txfs::cli {
namespace {

void EncodeDelta(const std::optional<Delta>& delta, Encoder& out) {
  out.Put(static_cast<uint8_t>(delta.has_value()));
  if (!delta) return;
  out.PutString(delta->name);
  out.Put(delta->keep);
  out.Put(delta->size);
  out.Put(static_cast<uint64_t>(delta->ranges.size()));
  for (const Range& range : delta->ranges) {
    out.Put(range.from);
    out.Put(range.to);
  }
}

std::optional<Delta> DecodeDelta(Decoder& in) {
  if (!in.GetBool()) return std::nullopt;
  Delta delta;
  delta.name = in.GetString();
  delta.keep = in.Get<uint64_t>();
  delta.size = in.Get<uint64_t>();
  uint64_t end = 0;
  for (auto left = in.Get<uint64_t>(); left > 0 && in.ok(); --left) {
    const auto from = in.Get<uint64_t>();
    const auto to = in.Get<uint64_t>();
    if (from < end || to < from) in.SetBad();
    end = to;
    delta.ranges.push_back({from, to});
  }
  return delta;
}

/// With what commands use of the attributes.
void EncodeSide(const std::optional<ChangeSide>& side, Encoder& out) {
  out.Put(static_cast<uint8_t>(side.has_value()));
  if (!side) return;
  const Attr& attr = side->attr;
  out.Put(static_cast<uint8_t>(attr.type));
  out.Put(attr.mode);
  out.Put(attr.uid);
  out.Put(attr.gid);
  out.Put(attr.nlink);
  out.Put(attr.rdev);
  out.Put(attr.size);
  EncodeTime(attr.mtime, out);
  out.PutString(side->symlink);
  out.PutString(side->base_path);
  out.PutString(side->vault_path);
  EncodeDelta(side->delta, out);
  out.Put(Raw(side->ino));
}

FileType DecodeType(Decoder& in) {
  const auto type = static_cast<FileType>(in.Get<uint8_t>());
  if (type >= FileType::kRegular && type <= FileType::kBlockDevice) return type;
  in.SetBad();
  return FileType::kRegular;
}

std::optional<ChangeSide> DecodeSide(Decoder& in) {
  if (!in.GetBool()) return std::nullopt;
  std::optional<ChangeSide> side(std::in_place);
  Attr& attr = side->attr;
  attr.type = DecodeType(in);
  attr.mode = in.Get<uint32_t>();
  attr.uid = in.Get<uint32_t>();
  attr.gid = in.Get<uint32_t>();
  attr.nlink = in.Get<uint32_t>();
  attr.rdev = in.Get<uint64_t>();
  attr.size = in.Get<uint64_t>();
  attr.mtime = DecodeTime(in);
  side->symlink = in.GetString();
  side->base_path = in.GetString();
  side->vault_path = in.GetString();
  side->delta = DecodeDelta(in);
  side->ino = Ino{in.Get<uint64_t>()};
  return side;
}

void EncodeNetChange(const NetChange& change, Encoder& out) {
  out.Put(static_cast<uint8_t>(change.kind));
  out.PutString(change.path);
  out.PutString(change.old_path);
  EncodeSide(change.before, out);
  EncodeSide(change.after, out);
  out.Put(static_cast<uint8_t>(change.content));
  out.Put(static_cast<uint8_t>(change.attributes));
}

NetChange DecodeNetChange(Decoder& in) {
  NetChange change;
  change.kind = static_cast<ChangeKind>(in.Get<uint8_t>());
  if (change.kind > ChangeKind::kTypeChanged) in.SetBad();
  change.path = in.GetString();
  change.old_path = in.GetString();
  change.before = DecodeSide(in);
  change.after = DecodeSide(in);
  change.content = in.GetBool();
  change.attributes = in.GetBool();
  return change;
}

std::unexpected<Error> InvalidChanges() {
  return Fail(EPROTO, "the daemon's reply has an invalid change");
}

}  // namespace

Status ChangeSender::Add(const NetChange& change) {
  const size_t start = waiting_.size();
  Encoder out(waiting_);
  out.Put(uint32_t{0});
  EncodeNetChange(change, out);
  const size_t length = waiting_.size() - start - sizeof(uint32_t);
  if (length > UINT32_MAX) return Fail(EMSGSIZE, change.path);
  const auto prefix = static_cast<uint32_t>(length);
  std::memcpy(waiting_.data() + start, &prefix, sizeof prefix);
  while (waiting_.size() > kPayloadMax) {
    TRY(Send({{"more", true}}, kPayloadMax));
  }
  return {};
}

Status ChangeSender::Finish(Json tail) {
  return Send(std::move(tail), waiting_.size());
}

Status ChangeSender::Send(Json header, size_t size) {
  Frame frame;
  frame.header = std::move(header);
  frame.payload = AsText(ByteSpan(waiting_).first(size));
  waiting_.erase(waiting_.begin(),
                 waiting_.begin() + static_cast<ptrdiff_t>(size));
  return sink_(frame);
}

Status ChangeReceiver::Take(std::string_view payload) {
  rest_ += payload;
  Decoder in(AsBytes(rest_));
  size_t used = 0;
  for (;;) {
    const std::string_view record = in.GetString();
    if (!in.ok()) break;  // the next payload has more of it
    used = rest_.size() - in.remaining();
    Decoder one(AsBytes(record));
    NetChange change = DecodeNetChange(one);
    if (!one.ok() || one.remaining() != 0) return InvalidChanges();
    changes_.push_back(std::move(change));
  }
  rest_.erase(0, used);
  return {};
}

Result<std::vector<NetChange>> ChangeReceiver::Finish() {
  if (!rest_.empty()) return InvalidChanges();
  return std::move(changes_);
}

}  // namespace txfs::cli

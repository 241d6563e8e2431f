#include "journal/rows.h"

#include <bit>

#include "journal/support/stored.h"

namespace txfs {
namespace {

uint64_t TakeKey(Decoder& in) { return std::byteswap(in.Get<uint64_t>()); }

bool IsDone(const Decoder& in) { return in.ok() && in.remaining() == 0; }

}  // namespace

void AppendKey(Bytes& key, uint64_t value) {
  Encoder(key).Put(std::byteswap(value));
}

std::optional<InodeRow> DecodeInodeRow(ByteSpan key, ByteSpan value) {
  const auto ino = DecodeInoKey(key);
  Decoder v(value);
  const Attr attr = DecodeAttr(v);
  if (!ino || !IsDone(v)) return std::nullopt;
  return InodeRow{*ino, attr};
}

bool DecodeOriginRow(ByteSpan value, InodeRecord& record) {
  Decoder v(value);
  DecodeOrigin(v, record.base, record.symlink);
  return IsDone(v);
}

std::optional<Ino> DecodeInoKey(ByteSpan key) {
  Decoder k(key);
  const Ino ino{TakeKey(k)};
  if (!IsDone(k) || !IsInodeNumber(ino)) return std::nullopt;
  return ino;
}

void EncodeDentryValue(const DentryValue& value, Bytes& out) {
  Encoder encoder(out);
  encoder.Put(static_cast<uint8_t>(value.kind));
  encoder.Put(Raw(value.ino));
}

std::optional<DentryRow> DecodeDentryRow(ByteSpan key, ByteSpan value) {
  Decoder k(key);
  Decoder v(value);
  DentryRow row;
  row.parent = Ino{TakeKey(k)};
  row.name = AsText(k.GetRaw(k.remaining()));
  const auto kind = v.Get<uint8_t>();
  row.value.ino = Ino{v.Get<uint64_t>()};
  if (!IsDone(k) || !IsDone(v) ||
      kind > static_cast<uint8_t>(DentryKind::kInode)) {
    return std::nullopt;
  }
  row.value.kind = static_cast<DentryKind>(kind);
  const bool means = IsInodeNumber(row.parent) && IsEntryName(row.name) &&
                     row.value.kind != DentryKind::kAbsent &&
                     IsSound(row.value);
  if (!means) return std::nullopt;
  return row;
}

void EncodeExtentValue(const Extent& extent, Bytes& out) {
  Encoder encoder(out);
  encoder.Put(extent.length);
  encoder.Put(extent.content.segment);
  encoder.Put(extent.content.record_length);
  encoder.Put(extent.content.record_position);
  encoder.Put(extent.content.checksum);
  encoder.Put(extent.content.delta);
}

// An extent is checked where it is decoded whole, so rows go through that.
std::optional<ExtentRow> DecodeExtentRow(ByteSpan key, ByteSpan value) {
  Decoder k(key);
  const Ino ino{TakeKey(k)};
  Bytes whole;
  Encoder encoder(whole);
  encoder.Put(TakeKey(k));
  encoder.PutRaw(value);
  Decoder decoder(whole);
  const Extent extent = DecodeExtent(decoder);
  if (!IsDone(k) || !IsDone(decoder) || !IsInodeNumber(ino)) {
    return std::nullopt;
  }
  return ExtentRow{ino, extent};
}

std::optional<XattrKey> DecodeXattrKey(ByteSpan key) {
  Decoder k(key);
  XattrKey row;
  row.ino = Ino{TakeKey(k)};
  row.name = AsText(k.GetRaw(k.remaining()));
  const bool means = IsInodeNumber(row.ino) && IsXattrName(row.name);
  if (!IsDone(k) || !means) return std::nullopt;
  return row;
}

std::optional<Lsn> DecodeLogKey(ByteSpan key) {
  const auto number = DecodeInoKey(key);
  if (!number) return std::nullopt;
  return Lsn{Raw(*number)};
}

void EncodeSavepointValue(const Savepoint& savepoint, Bytes& out) {
  Encoder encoder(out);
  EncodeTime(savepoint.time, encoder);
  encoder.PutString(savepoint.name);
}

std::optional<Savepoint> DecodeSavepointRow(ByteSpan key, ByteSpan value) {
  const auto lsn = DecodeLogKey(key);
  Decoder v(value);
  Savepoint savepoint;
  savepoint.time = DecodeTime(v);
  savepoint.name = v.GetString();
  if (!lsn || !IsDone(v) || savepoint.name.empty()) return std::nullopt;
  savepoint.lsn = *lsn;
  return savepoint;
}

void EncodeDenialValue(const LogEntry& denial, Bytes& out) {
  Encoder encoder(out);
  encoder.Put(denial.count);
  EncodeTime(denial.first, encoder);
  EncodeChange(denial.change, out);
}

std::optional<LogEntry> DecodeDenialRow(ByteSpan key, ByteSpan value) {
  const auto lsn = DecodeLogKey(key);
  Decoder v(value);
  LogEntry denial;
  denial.count = v.Get<uint64_t>();
  denial.first = DecodeTime(v);
  auto change = DecodeChange(v.GetRaw(v.remaining()));
  if (!lsn || !IsDone(v) || !change || denial.count == 0 ||
      !IsDenial(*change) || !change->edits.empty()) {
    return std::nullopt;
  }
  denial.lsn = *lsn;
  denial.change = *std::move(change);
  return denial;
}

void EncodeRuleRow(const DeniedRule& rule, Bytes& key, Bytes& value) {
  AppendKey(key, rule.policy);
  Encoder(key).PutRaw(AsBytes(rule.rule));
  Encoder encoder(value);
  encoder.Put(rule.count);
  EncodeTime(rule.first, encoder);
  EncodeTime(rule.last, encoder);
  encoder.PutString(rule.reason);
  encoder.PutString(rule.suggest);
}

std::optional<DeniedRule> DecodeRuleRow(ByteSpan key, ByteSpan value) {
  Decoder k(key);
  Decoder v(value);
  DeniedRule rule;
  rule.policy = TakeKey(k);
  rule.rule = AsText(k.GetRaw(k.remaining()));
  rule.count = v.Get<uint64_t>();
  rule.first = DecodeTime(v);
  rule.last = DecodeTime(v);
  rule.reason = v.GetString();
  rule.suggest = v.GetString();
  const bool means = rule.policy != 0 && !rule.rule.empty() && rule.count != 0;
  if (!IsDone(k) || !IsDone(v) || !means) return std::nullopt;
  return rule;
}

Bytes EncodeCursor(const IntakeCursor& cursor) {
  Bytes bytes;
  Encoder encoder(bytes);
  encoder.Put(cursor.salt);
  encoder.Put(cursor.position);
  encoder.Put(Raw(cursor.next_lsn));
  return bytes;
}

std::optional<IntakeCursor> DecodeCursor(ByteSpan value) {
  Decoder decoder(value);
  IntakeCursor cursor;
  cursor.salt = decoder.Get<uint64_t>();
  cursor.position = decoder.Get<uint64_t>();
  cursor.next_lsn = Lsn{decoder.Get<uint64_t>()};
  const bool means =
      cursor.position % 8 == 0 && cursor.position < kStoredNumberMax &&
      cursor.next_lsn != kNoLsn && Raw(cursor.next_lsn) < kStoredNumberMax;
  if (!IsDone(decoder) || !means) return std::nullopt;
  return cursor;
}

}  // namespace txfs

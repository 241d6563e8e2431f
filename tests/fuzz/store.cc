// What a store has, but for its tables: the first byte says what is decoded.
// What comes around it, magic, version and checksum, is put there, as who makes
// a store up would do.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "cli/output/json.h"
#include "fs/commit/commit_image.h"
#include "fs/commit/committer.h"
#include "fs/vault/vault_manifest.h"
#include "fs/vault/vault_sums.h"
#include "journal/rows.h"
#include "journal/support/checksum.h"
#include "tests/fuzz/fuzz.h"

namespace txfs {
namespace {

using fuzz::Demand;

Bytes Framed(std::string_view magic, uint32_t version, ByteSpan content) {
  Bytes bytes;
  Encoder out(bytes);
  out.PutRaw(AsBytes(magic));
  out.Put(version);
  out.PutRaw(content);
  out.Put(Checksum(bytes));
  return bytes;
}

/// What is read says the same when it is written.
template <class Decode, class Encode>
void CheckStable(const Bytes& bytes, const Decode& decode,
                 const Encode& encode) {
  const auto value = decode(ByteSpan(bytes));
  if (!value) return;
  const Bytes once = encode(*value);
  const auto again = decode(ByteSpan(once));
  Demand(again.has_value(), "what is written can be read");
  Demand(encode(*again) == once, "what is read is what was written");
}

void ReadSummary(ByteSpan in) {
  CheckStable(Framed("TXFSTXN\n", 2, in), DecodeSummary, EncodeSummary);
  CheckStable(Framed("TXFSTXN\n", 3, in), DecodeSummary, EncodeSummary);
  CheckStable(Framed("TXFSRUN\n", 1, in), DecodeRuns, EncodeRuns);
}

/// After the kind and the rest of a summary that is sound.
void ReadPlan(ByteSpan in) {
  if (in.empty()) return;
  TransactionSummary summary{.id = "01a1fda80390",
                             .state = TransactionState::kCommitted,
                             .created = {1'700'000'000, 5},
                             .ended = {1'700'000'060, 6}};
  summary.kind = static_cast<TransactionKind>(static_cast<uint8_t>(in[0]) % 3);
  if (summary.kind != TransactionKind::kWhole) summary.of = "01a1fda80391";
  Bytes content;
  Encoder out(content);
  out.PutString(AsText(EncodeSummary(summary)));
  out.PutRaw(in.subspan(1));
  CheckStable(Framed("TXFSPLN\n", 1, content), DecodeRecord, EncodeRecord);
}

void ReadImage(ByteSpan in) {
  CheckStable(Framed("TXFSIMG\n", 1, in), DecodeImage, EncodeImage);
}

void ReadManifest(ByteSpan in) {
  CheckStable(Framed("TXFSVLT\n", 2, in), DecodeManifest, EncodeManifest);
}

void ReadSums(ByteSpan in) {
  CheckStable(Framed("TXFSSUM\n", 1, in), DecodeSums, EncodeSums);
}

void ReadParts(ByteSpan in) {
  const auto mounts = DecodeParts(AsText(in));
  if (!mounts) return;
  for (const std::string& mount : *mounts) {
    Demand(!mount.empty() && mount.front() != '/', "mounts are below a root");
  }
}

void ReadChange(ByteSpan in) {
  CheckStable(Bytes(in.begin(), in.end()), DecodeChange,
              [](const Change& change) {
                Bytes bytes;
                EncodeChange(change, bytes);
                return bytes;
              });
}

/// One byte says how long the key is.
void ReadRow(ByteSpan in) {
  if (in.empty()) return;
  const size_t size =
      std::min<size_t>(static_cast<uint8_t>(in[0]), in.size() - 1);
  const ByteSpan key = in.subspan(1, size);
  const ByteSpan value = in.subspan(1 + size);
  const auto dentry = DecodeDentryRow(key, value);
  if (dentry) {
    Bytes bytes;
    EncodeDentryValue(dentry->value, bytes);
    Demand(std::ranges::equal(bytes, value), "a dentry is what was written");
    Demand(dentry->name.find('/') == std::string::npos, "a name has no slash");
  }
  const auto extent = DecodeExtentRow(key, value);
  if (extent) {
    Demand(extent->extent.end() > extent->extent.offset, "an extent ends");
  }
  InodeRecord record;
  std::ignore = DecodeInodeRow(key, value);
  std::ignore = DecodeOriginRow(value, record);
  std::ignore = DecodeXattrKey(key);
  std::ignore = DecodeLogKey(key);
  std::ignore = DecodeSavepointRow(key, value);
  std::ignore = DecodeDenialRow(key, value);
  std::ignore = DecodeRuleRow(key, value);
  std::ignore = DecodeCursor(value);
}

void ReadDaemonRecord(ByteSpan in) {
  const cli::Json record = cli::Json::parse(AsText(in), nullptr, false);
  std::ignore = cli::GetBytes(record, "mountpoint");
  std::ignore = cli::GetBytes(record, "socket");
  std::ignore = cli::GetUint(record, "pid");
}

constexpr std::array kDecoders = {ReadSummary,  ReadPlan, ReadImage,
                                  ReadManifest, ReadSums, ReadParts,
                                  ReadChange,   ReadRow,  ReadDaemonRecord};

}  // namespace
}  // namespace txfs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const txfs::ByteSpan in = txfs::AsBytes(txfs::fuzz::TextOf(data, size));
  txfs::kDecoders[data[0] % txfs::kDecoders.size()](in.subspan(1));
  return 0;
}

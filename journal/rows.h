#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "journal/change.h"
#include "journal/denials.h"
#include "journal/intake.h"
#include "journal/savepoint.h"
#include "journal/support/bytes.h"
#include "journal/support/types.h"

namespace txfs {

// The rows of the tables as bytes (docs/format.md, "db"). Decoders return none
// for an invalid row.

inline constexpr uint32_t kTablesVersion = 3;
/// The first with the tables `denial` and `rule`.
inline constexpr uint32_t kVersionWithDenials = 2;
/// Keys of `meta`.
inline constexpr std::string_view kFormatKey = "format";
inline constexpr std::string_view kCursorKey = "cursor";
inline constexpr std::string_view kFactPrefix = "fact.";

/// Keys sort as bytes, so their integers are big-endian.
void AppendKey(Bytes& key, uint64_t value);

struct InodeRow {
  Ino ino = kNoIno;
  Attr attr;
};
std::optional<InodeRow> DecodeInodeRow(ByteSpan key, ByteSpan value);

/// Sets base and symlink of `record`; false if the row is invalid.
[[nodiscard]] bool DecodeOriginRow(ByteSpan value, InodeRecord& record);
/// Decodes a key that is an inode number and nothing else.
std::optional<Ino> DecodeInoKey(ByteSpan key);

struct DentryRow {
  Ino parent = kNoIno;
  std::string name;
  DentryValue value;
};
void EncodeDentryValue(const DentryValue& value, Bytes& out);
std::optional<DentryRow> DecodeDentryRow(ByteSpan key, ByteSpan value);

struct ExtentRow {
  Ino ino = kNoIno;
  Extent extent;
};
/// The extent without its offset, which is in the key.
void EncodeExtentValue(const Extent& extent, Bytes& out);
std::optional<ExtentRow> DecodeExtentRow(ByteSpan key, ByteSpan value);

struct XattrKey {
  Ino ino = kNoIno;
  std::string name;
};
std::optional<XattrKey> DecodeXattrKey(ByteSpan key);

std::optional<Lsn> DecodeLogKey(ByteSpan key);

/// The savepoint without its LSN, which is the key.
void EncodeSavepointValue(const Savepoint& savepoint, Bytes& out);
std::optional<Savepoint> DecodeSavepointRow(ByteSpan key, ByteSpan value);

/// The denial without its LSN, which is the key.
void EncodeDenialValue(const LogEntry& denial, Bytes& out);
std::optional<LogEntry> DecodeDenialRow(ByteSpan key, ByteSpan value);

void EncodeRuleRow(const DeniedRule& rule, Bytes& key, Bytes& value);
std::optional<DeniedRule> DecodeRuleRow(ByteSpan key, ByteSpan value);

Bytes EncodeCursor(const IntakeCursor& cursor);
std::optional<IntakeCursor> DecodeCursor(ByteSpan value);

}  // namespace txfs

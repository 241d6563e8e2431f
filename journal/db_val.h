#pragma once

#include <lmdb.h>

#include "journal/support/bytes.h"

namespace txfs {

/// Bytes as LMDB's type, which is not const. LMDB does not write to them.
inline MDB_val ToVal(ByteSpan bytes) {
  return {bytes.size(), const_cast<std::byte*>(bytes.data())};
}
inline ByteSpan ToSpan(const MDB_val& value) {
  return {static_cast<const std::byte*>(value.mv_data), value.mv_size};
}

}  // namespace txfs

#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// The number of pages that the file may lack of those its meta pages count:
/// LMDB does not write new pages that it did not use.
inline constexpr uint64_t kMaxUnwrittenPages = 16;

/// Copies the data file of the transaction directory `dir` into memory, as far
/// as it is in use. Takes no lock and leaves no trace, not even in LMDB's lock
/// file. Copies again if a batch was committed meanwhile. EBADMSG: damaged;
/// kBusy: a batch was committed during each try.
Result<UniqueFd> CopyTables(int dir);

/// Sees a row of `table`. If `table` is empty, `key` is the name of a table.
using RowVisitor =
    std::function<void(std::string_view table, ByteSpan key, ByteSpan value)>;

/// Feeds every row of a copy that CopyTables made to `visit`: table names, then
/// meta, inode, origin, dentry, extent, xattr, savepoint, rule, denial, log,
/// each in order of its keys. A child process reads the file, because LMDB
/// trusts it: a damaged file may crash LMDB or make it loop. EBADMSG in these
/// cases, too; the rows visited before may then be wrong.
Status DumpTables(int copy, const RowVisitor& visit);

}  // namespace txfs

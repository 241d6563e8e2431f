#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "journal/support/bytes.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// LMDB does not write new pages that it did not use: what its first pages say
/// that there is may be that many more than the file has.
inline constexpr uint64_t kMaxUnwrittenPages = 16;

/// The file with the tables of the transaction directory `dir`, copied into
/// memory: as large as what is in use of it. Needs no lock and leaves no trace,
/// not even in LMDB's lock file: a copy during which a batch was committed is
/// made again. EBADMSG: damaged; kBusy: batches follow each other too fast.
Result<UniqueFd> CopyTables(int dir);

/// Sees a row of `table`; an empty table name: the name of a table as key.
using RowVisitor =
    std::function<void(std::string_view table, ByteSpan key, ByteSpan value)>;

/// Feeds every row of what CopyTables made to `visit`: table names, then meta,
/// inode, origin, dentry, extent, xattr, savepoint, rule, denial, log, each in
/// order of its keys. LMDB trusts what it reads and may die of it, or not come
/// to an end; so it reads in a child process. EBADMSG for that, too; what was
/// visited before may be wrong then.
Status DumpTables(int copy, const RowVisitor& visit);

}  // namespace txfs

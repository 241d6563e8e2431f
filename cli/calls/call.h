#pragma once

#include "cli/protocol/client.h"
#include "journal/call_mark.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Marks the begin of a tool call, or with `mark.end` its end, in the
/// transaction of `client`: a savepoint that bears the host's ids. Long ids and
/// commands are cut. Does not write back shared mappings, which takes longer
/// than a call may: stores that the kernel has not written back yet count as
/// changes of a later call. An error means that there is no mark; nothing else
/// depends on it.
Status MarkCall(Client& client, const CallMark& mark);

}  // namespace txfs::cli

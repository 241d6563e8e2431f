#pragma once

#include "journal/support/result.h"

namespace txfs {

/// Checks everything that LMDB assumes about the file `data` with tables
/// (data.mdb), so that LMDB neither crashes nor hangs:
/// - each page in use is in the file, has one use, and has the type for it;
/// - the rows that a page lists lie within it;
/// - keys are in order;
/// - the list of free pages has no page that is in use.
///
/// Reads each page in use once. No process may write to pages in use meanwhile.
/// EBADMSG, with the page. Does not check the content of rows: their decoders
/// do.
Status CheckPages(int data);

}  // namespace txfs

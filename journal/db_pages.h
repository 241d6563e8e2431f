#pragma once

#include "journal/support/result.h"

namespace txfs {

/// Checks all that LMDB takes for granted about the file `data` with tables
/// (data.mdb), so that it can neither die of it nor hang: that the pages in use
/// are in the file, each once, and are what they are used as; that what they
/// say about their rows fits into them; that keys are in order, and that the
/// list of free pages has no page that is in use. Reads each page in use once.
/// Nobody may write to the file meanwhile, but for pages that are not in use.
/// EBADMSG, with the page.
///
/// What is in rows is not looked at: their decoders do that.
Status CheckPages(int data);

}  // namespace txfs

#pragma once

#include <string>
#include <vector>

#include "cli/plain/plain_use.h"
#include "cli/run/call_site.h"
#include "cli/shell/part.h"

namespace txfs::cli {

/// A part of a text, with what it does to files.
struct PlainPart {
  PlainUse use;
  std::string directory;  ///< in which it runs; "": unknown
};

/// The parts of `reading`; empty if what one of them does is not known.
[[nodiscard]] std::vector<PlainPart> PlainPartsOf(const ShellReading& reading);

/// Whether a host may run `parts` unasked where no sandbox confines them: they
/// read no secrets, and change, where that is in a mount, only what the
/// transaction has and no rule refuses or holds. Follows the links that are
/// there now.
Result<bool> MayRunUnasked(const std::vector<PlainPart>& parts,
                           const CommandStart& start, CallSite& site);

}  // namespace txfs::cli

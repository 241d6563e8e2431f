#pragma once

#include <string>
#include <vector>

#include "cli/diff/file_change.h"
#include "cli/output/output.h"

namespace txfs::cli {

/// The output format; a patch by default.
struct DiffStyle {
  bool name_status = false, stat = false;
  bool nul = false;  ///< -z
  std::string color = "auto";
};

Status PrintChanges(const DiffStyle& style,
                    const std::vector<FileChange>& changes,
                    const ContentReader& read, Output& output);

/// Lists on stderr the files whose content this user may not read.
void SayClosed(const std::vector<NetChange>& changes);
/// Lists on stderr what the patch leaves out.
void SayWhatIsMissing(const std::vector<FileChange>& changes);

}  // namespace txfs::cli

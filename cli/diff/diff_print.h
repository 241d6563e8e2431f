#pragma once

#include <string>
#include <vector>

#include "cli/diff/file_change.h"
#include "cli/output/output.h"

namespace txfs::cli {

/// How changes are printed: as a patch unless it says otherwise.
struct DiffStyle {
  bool name_status = false, stat = false;
  bool nul = false;  ///< -z
  std::string color = "auto";
};

Status PrintChanges(const DiffStyle& style,
                    const std::vector<FileChange>& changes,
                    const ContentReader& read, Output& output);

/// Of which files nobody may see the content, on stderr.
void SayClosed(const std::vector<NetChange>& changes);
/// What the patch leaves out, on stderr.
void SayWhatIsMissing(const std::vector<FileChange>& changes);

}  // namespace txfs::cli

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "journal/support/result.h"
#include "policy/load.h"
#include "policy/policy.h"

namespace txfs::policy {

/// The place of a policy file, or of another one with the same conditions.
struct SourceFile {
  std::string path;  ///< absolute
  /// Relative to the workspace root if it lies in the workspace; empty: it is
  /// read at `path`.
  std::string in_workspace = {};
  bool required = true;         ///< else skipped if it is missing
  std::string what = "policy";  ///< for messages
};

/// The sources of a policy.
struct Sources {
  bool builtin = false;  ///< the default policy, before all others
  std::vector<std::string> without = {};  ///< ids to leave out of it
  std::vector<SourceFile> files;          ///< the weakest first
  bool examples = false;                  ///< those of the default policy, too
};

/// The text of a policy file.
struct SourceText {
  std::string file;  ///< its path, for messages
  std::string text;
  bool operator==(const SourceText&) const = default;
};

/// The default policy without the rules and limits `without`; the others stay
/// on their lines. EINVAL if there is no rule with one of these ids.
Result<std::string> BuiltinWithout(const std::vector<std::string>& without);

/// Reads `source`, below the directory `workspace` if it lies in it. None: it
/// is missing, and not required. Errors as ReadSources, but for [hook].
Result<std::optional<std::string>> ReadSource(const SourceFile& source,
                                              int workspace);

/// Reads all of `sources`. Those in the workspace are read below its directory
/// `workspace`, beneath mounts over it. EPERM for a file that users other than
/// its owner may write to, or whose owner is neither root nor the caller; in
/// the workspace, also for one with other hard links or reached through a
/// symbolic link. EINVAL for a [hook] in a file of the workspace.
Result<std::vector<SourceText>> ReadSources(const Sources& sources,
                                            int workspace);

/// The combined policy of the texts (Load, Combine); null if there are none.
/// `examples`: with those of the default policy, which is then parsed anew.
/// Texts that are those of the last call give its policy.
Result<std::shared_ptr<const Policy>> Compile(
    const std::vector<SourceText>& texts, bool examples = false);

/// ReadSources and Compile.
Result<std::shared_ptr<const Policy>> LoadSources(const Sources& sources,
                                                  int workspace);

/// Combines files, the weakest first. A file can add rules and cannot remove
/// any, so it can only make the policy stricter. EINVAL if two rules have the
/// same id, if there are two [hook]s, or if a rule needs one and there is none.
Result<std::shared_ptr<const Policy>> Combine(std::vector<Loaded> files);

}  // namespace txfs::policy

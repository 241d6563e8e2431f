#pragma once

#include <memory>
#include <string>
#include <vector>

#include "journal/support/result.h"
#include "policy/load.h"
#include "policy/policy.h"

namespace txfs::policy {

/// A file of rules, and where it is.
struct SourceFile {
  std::string path;  ///< absolute
  /// From the workspace's root, when it lies in there; empty: it is read at
  /// `path`.
  std::string in_workspace = {};
  bool required = true;  ///< else skipped when it is missing
};

/// Where rules come from.
struct Sources {
  bool builtin = false;  ///< the default policy, before all others
  std::vector<std::string> without = {};  ///< ids: what that leaves out
  std::vector<SourceFile> files;          ///< the weakest first
};

/// A file of rules as it was read.
struct SourceText {
  std::string file;  ///< its path, for messages
  std::string text;
};

/// The default policy, but for the rules and limits `without`; the others are
/// on the lines where they were. EINVAL: there is no such one.
Result<std::string> BuiltinWithout(const std::vector<std::string>& without);

/// Reads all of `sources`; those that lie in the workspace below `workspace`,
/// its directory, whatever is mounted over it. Refused (EPERM) is a file that
/// somebody but its owner may write, or whose owner is neither root nor the
/// caller.
Result<std::vector<SourceText>> ReadSources(const Sources& sources,
                                            int workspace);

/// What the texts say together, as Load and Combine; null when there are none.
Result<std::shared_ptr<const Policy>> Compile(
    const std::vector<SourceText>& texts);

/// ReadSources and Compile.
Result<std::shared_ptr<const Policy>> LoadSources(const Sources& sources,
                                                  int workspace);

/// What the files say together, the first the weakest. A later one adds rules
/// and takes none away, so it only ever makes the whole stricter. EINVAL when
/// two have a rule of the same id.
Result<std::shared_ptr<const Policy>> Combine(std::vector<Loaded> files);

}  // namespace txfs::policy

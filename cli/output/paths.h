#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// Absolute path of the working directory. Works in a dead mount, too.
Result<std::string> CurrentDirectory();

/// `path` relative to the absolute `directory`, made absolute, as text.
[[nodiscard]] std::string MakeAbsolute(const std::string& directory,
                                       const std::string& path);

/// `path` relative to the absolute `directory`, made absolute, without links,
/// "." and "..". What does not exist or cannot be reached (a deleted file, a
/// dead mount) is resolved as far as it can be and the rest taken literally.
[[nodiscard]] std::string ResolvePath(const std::string& directory,
                                      const std::string& path);

/// The same, but a link in the last component is not followed.
[[nodiscard]] std::string ResolveParent(const std::string& directory,
                                        const std::string& path);

/// Whether `path` is `ancestor` or lies below it; both resolved.
[[nodiscard]] bool IsWithin(std::string_view path, std::string_view ancestor);

/// `path` relative to `root`, "" for the root itself; none when it is outside.
[[nodiscard]] std::optional<std::string> RelativeTo(std::string_view path,
                                                    std::string_view root);

/// "a" and "b" as "a/b", whatever slashes are there already; "b" may be empty.
[[nodiscard]] std::string JoinPath(std::string_view a, std::string_view b);

}  // namespace txfs::cli

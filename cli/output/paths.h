#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "journal/support/result.h"

namespace txfs::cli {

/// Absolute path of the working directory. Works also in a dead mount.
Result<std::string> CurrentDirectory();

/// Makes `path`, relative to the absolute `directory`, absolute. Changes only
/// the text.
[[nodiscard]] std::string MakeAbsolute(const std::string& directory,
                                       const std::string& path);

/// Makes `path`, relative to the absolute `directory`, absolute and resolves
/// links, "." and "..". If a part does not exist or cannot be reached (a
/// deleted file, a dead mount), the rest is taken literally.
[[nodiscard]] std::string ResolvePath(const std::string& directory,
                                      const std::string& path);

/// As ResolvePath, but does not follow a link in the last component.
[[nodiscard]] std::string ResolveParent(const std::string& directory,
                                        const std::string& path);

/// Whether `path` is `ancestor` or below it; both resolved.
[[nodiscard]] bool IsWithin(std::string_view path, std::string_view ancestor);

/// `path` relative to `root`, "" for the root itself; none if it is outside.
[[nodiscard]] std::optional<std::string> RelativeTo(std::string_view path,
                                                    std::string_view root);

/// "a" and "b" as "a/b", without duplicate slashes; "b" may be empty.
[[nodiscard]] std::string JoinPath(std::string_view a, std::string_view b);

}  // namespace txfs::cli

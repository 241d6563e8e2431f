#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// Which content of a file a rule at the commit holds.
enum class ContentKind : uint8_t {
  kAny,
  /// Settings of git that run programs, lead elsewhere, or are not known to be
  /// harmless.
  kGitConfig,
  /// A file `.git` or `commondir` that leads out of the workspace's own
  /// repository.
  kGitFile,
  /// The same settings as kGitConfig in a directory that has a HEAD: git takes
  /// it for a repository.
  kGitBare,
  /// Lines of a `*.pth` file that Python runs when it starts.
  kPythonPath,
};
[[nodiscard]] std::string_view NameOf(ContentKind kind);
[[nodiscard]] std::optional<ContentKind> ContentKindNamed(
    std::string_view name);

/// A file whose content is judged.
struct ContentPlace {
  std::string_view path;       ///< from the workspace's root
  std::string_view workspace;  ///< absolute
};

/// The lines of `after` that matter for `kind` and that `before`, the former
/// content, does not have; of kAny, all new lines. Settings of git have the
/// form "section.key = value". Pure.
[[nodiscard]] std::vector<std::string> LinesThatMatter(ContentKind kind,
                                                       std::string_view before,
                                                       std::string_view after,
                                                       ContentPlace place);

/// A setting of a file in the format of git's configuration.
struct GitSetting {
  std::string section;     ///< in lower case; "": not a setting
  std::string subsection;  ///< "": none
  std::string name;        ///< in lower case
  std::string value;

  bool operator==(const GitSetting&) const = default;
};

/// The settings of `text` in their order, as git reads them. A line that git
/// does not take has no section, and the line as its value.
[[nodiscard]] std::vector<GitSetting> ReadGitSettings(std::string_view text);

/// Those of `after` that run programs, lead elsewhere, or are not known to be
/// harmless, and that `before` does not have.
[[nodiscard]] std::vector<GitSetting> RiskySettings(std::string_view before,
                                                    std::string_view after);

/// Where a configuration of git leads git in the workspace; paths from its
/// root.
struct GitRedirects {
  std::vector<std::string> hooks;     ///< directories: core.hooksPath
  std::vector<std::string> settings;  ///< files: include.path, includeIf
};
/// Those of `text`, the configuration at `place`.
[[nodiscard]] GitRedirects RedirectsOf(std::string_view text,
                                       ContentPlace place);

}  // namespace txfs::policy

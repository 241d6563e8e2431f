#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace txfs::policy {

/// Where a path of a command leads.
enum class Region : uint8_t {
  kWorkspace,
  kTemporary,  ///< /tmp, /var/tmp, $TMPDIR
  kHome,       ///< in a home directory
  kDevice,     ///< a device that keeps data
  kOutside,    ///< elsewhere
  /// The root, a home directory itself, or a directory above the workspace.
  kRoot,
  kUnknown,  ///< it begins with what the text does not say
};
inline constexpr size_t kRegions = 7;
[[nodiscard]] std::string_view NameOf(Region region);
[[nodiscard]] std::optional<Region> RegionNamed(std::string_view name);
/// A set of regions.
using Regions = uint32_t;
[[nodiscard]] constexpr Regions MaskOf(Region region) {
  return Regions{1} << static_cast<unsigned>(region);
}
/// What the name "outside" stands for in a rule.
inline constexpr Regions kAllOutside =
    MaskOf(Region::kHome) | MaskOf(Region::kDevice) | MaskOf(Region::kOutside) |
    MaskOf(Region::kRoot);

/// The directories that tell where a path leads; all absolute and normal.
struct Surroundings {
  std::string workspace;
  std::string home;
  std::string temporary;      ///< besides /tmp and /var/tmp; may be empty
  bool is_workspace = false;  ///< else `workspace` is only a directory
};

/// What is known about the consequences of a command.
enum class Class : uint8_t {
  kUndoable,      ///< changes files in the workspace only: a transaction can
                  ///< take it back
  kConfined,      ///< reaches no further than this machine: `txfs run` keeps it
  kUnknown,       ///< the text does not tell
  kIrreversible,  ///< leaves the machine, or nothing brings it back
};
[[nodiscard]] std::string_view NameOf(Class one);
[[nodiscard]] std::optional<Class> ClassNamed(std::string_view name);

/// An argument of a command. The parts that the text does not tell, such as
/// `$DIR`, are in `text` as they are written.
struct Word {
  std::string text;
  bool known = true;
  bool quoted = false;      ///< no pattern of the shell
  size_t known_prefix = 0;  ///< bytes before the first unknown part
};
[[nodiscard]] Word KnownWord(std::string text);

/// A path in an argument.
struct PathArgument {
  std::string path;  ///< absolute and normal, unless its begin is unknown
  Region region = Region::kUnknown;
  size_t argument = 0;  ///< its number; kNoArgument: it is read as input
};
inline constexpr size_t kNoArgument = SIZE_MAX;

/// What an interpreter reads its program from.
enum class Script : uint8_t {
  kNone,
  kInput,    ///< standard input, or what another command writes
  kCode,     ///< an argument, in a language that is not parsed
  kUnknown,  ///< text that is not known
};
[[nodiscard]] std::string_view NameOf(Script script);
[[nodiscard]] std::optional<Script> ScriptNamed(std::string_view name);

/// One start of a program, as rules see it.
struct Command {
  Word program;  ///< as written: a name or a path
  std::vector<Word> arguments;
  std::string directory;                 ///< absolute and normal; "": unknown
  std::vector<std::string> environment;  ///< NAME=VALUE, set for it
  bool remote = false;                   ///< another machine runs it
  /// It runs in a container that goes with it: what it does to files is gone.
  bool contained = false;
  /// Commands whose output it reads or has in its arguments: program and
  /// arguments, separated by blanks.
  std::vector<std::string> fed_by;
  std::string input;  ///< literal text on its standard input
  Script script = Script::kNone;
  /// Paths that it or the commands before it in a pipe read.
  std::vector<PathArgument> reads;
  std::vector<PathArgument> paths;  ///< of the arguments
};

/// Without ".", ".." and duplicate slashes; relative to `directory`. Changes
/// only the text.
[[nodiscard]] std::string NormalPath(std::string_view directory,
                                     std::string_view path);
/// Of a normal absolute path.
[[nodiscard]] Region RegionOf(std::string_view path,
                              const Surroundings& surroundings);
/// What follows the home directory in `path`, without a slash before it; none:
/// it is in no home.
[[nodiscard]] std::optional<std::string_view> BelowHome(
    std::string_view path, const Surroundings& surroundings);
/// The path that `word` may name, with or without an option before it.
[[nodiscard]] std::optional<PathArgument> PathIn(
    const Word& word, std::string_view directory,
    const Surroundings& surroundings);
/// Fills in `paths`.
void FindPaths(Command& command, const Surroundings& surroundings);
/// The last component of `path`.
[[nodiscard]] std::string_view BaseName(std::string_view path);

}  // namespace txfs::policy

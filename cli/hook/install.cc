#include "cli/hook/install.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"
#include "cli/protocol/runtime_dir.h"
#include "cli/run/sandbox_probes.h"
#include "journal/support/file.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxConfiguration = size_t{4} << 20;

/// The file of a host's configuration, below a directory that is opened as it
/// is; nothing in `name` may be a symbolic link.
struct HookFile {
  std::string directory, name;

  [[nodiscard]] std::string path() const { return JoinPath(directory, name); }
};

HookFile FileOf(const HookHost& host, HookScope scope,
                const std::string& directory) {
  if (scope == HookScope::kProject) {
    return {directory, std::string(host.project_file)};
  }
  const char* given =
      host.variable == nullptr ? nullptr : std::getenv(host.variable);
  if (given != nullptr && given[0] == '/') {
    return {given, std::string(host.user_file)};
  }
  return {HomeDirectory(), JoinPath(std::string(host.user_directory),
                                    std::string(host.user_file))};
}

std::unexpected<Error> IsNotUsable(const std::string& why) {
  return Fail(0, why,
              "in an empty directory, `txfs hook install HOST --project "
              "--dry-run` prints what to insert");
}

Result<Document> ParseConfiguration(const std::string& text) {
  const Json checked = ParseStrictly(text);
  if (!checked.is_object()) {
    return IsNotUsable("is not a JSON object without comments");
  }
  return Document::parse(text, nullptr, false);
}

/// The white space before the first member; of other shapes two blanks.
int IndentOf(const std::string& text) {
  const size_t line = text.find('\n');
  if (line == std::string::npos) return 2;
  const size_t first = text.find_first_not_of(' ', line + 1);
  if (first == std::string::npos || first == line + 1) return 2;
  return static_cast<int>(std::min<size_t>(first - line - 1, 8));
}

std::string FormattedLike(const Document& document, const std::string& like) {
  // Not Dump: other members stay as they are, whatever characters they have.
  return document.dump(IndentOf(like), ' ', false,
                       Document::error_handler_t::replace) +
         "\n";
}

/// The words of a handler: its program and arguments, or its shell text.
std::vector<std::string> WordsOf(const Document& handler) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& text) {
    size_t at = 0;
    while ((at = text.find_first_not_of(' ', at)) != std::string::npos) {
      const size_t end = std::min(text.find(' ', at), text.size());
      words.push_back(text.substr(at, end - at));
      at = end;
    }
  };
  for (const char* key : {"command", "bash"}) {
    if (handler.contains(key) && handler[key].is_string()) {
      add(handler[key].get<std::string>());
    }
  }
  if (handler.contains("args") && handler["args"].is_array()) {
    for (const Document& word : handler["args"]) {
      if (word.is_string()) words.push_back(word.get<std::string>());
    }
  }
  return words;
}

/// Whether `handler` calls the hook of `host`, by any path of the program.
bool CallsHook(const HookHost& host, const Document& handler) {
  if (!handler.is_object()) return false;
  const std::vector<std::string> words = WordsOf(handler);
  if (words.size() != 3) return false;
  const std::string& program = words[0];
  return program.substr(program.rfind('/') + 1) == "txfs" &&
         words[1] == "hook" && words[2] == host.name;
}

/// Removes what calls the hook from the element of an event's list. Whether
/// nothing is left of it.
bool StripElement(const HookHost& host, Document& element) {
  if (CallsHook(host, element)) return true;
  if (!element.is_object() || !element.contains("hooks") ||
      !element["hooks"].is_array()) {
    return false;
  }
  Document& handlers = element["hooks"];
  const size_t before = handlers.size();
  for (size_t i = handlers.size(); i-- > 0;) {
    if (CallsHook(host, handlers[i])) handlers.erase(i);
  }
  return handlers.empty() && before != 0;
}

/// Removes what calls the hook from the list of an event.
void StripList(const HookHost& host, Document& list) {
  for (size_t i = list.size(); i-- > 0;) {
    if (StripElement(host, list[i])) list.erase(i);
  }
}

Result<Document*> HooksOf(Document& document) {
  if (!document.contains("hooks")) document["hooks"] = Document::object();
  Document& hooks = document["hooks"];
  if (!hooks.is_object()) return IsNotUsable("has \"hooks\" of another shape");
  return &hooks;
}

/// Adds the hook to the list of `event`, unless it is there.
Status AddEvent(const HookHost& host, const HookHost::Event& event,
                Document& hooks) {
  const std::string name(event.name);
  if (!hooks.contains(name)) hooks[name] = Document::array();
  Document& list = hooks[name];
  if (!list.is_array()) {
    return IsNotUsable("has \"" + name + "\" of another shape");
  }
  Document element = Document::parse(event.element, nullptr, false);
  if (std::ranges::find(list, element) != list.end()) return {};
  // An earlier version of txfs may have put another entry there.
  StripList(host, list);
  list.push_back(std::move(element));
  return {};
}

/// Whether `document` has nothing but what an installation adds to no file.
bool IsBare(const HookHost& host, const Document& document) {
  if (document.empty()) return true;
  return host.has_version && document.size() == 1 &&
         document.contains("version");
}

bool IsOurProgram(const HookHost& host, const std::string& text) {
  const std::string_view first =
      host.program.substr(0, host.program.find('\n') + 1);
  return text.starts_with(first);
}

std::unexpected<Error> AtFile(const HookFile& file, Error error) {
  error.message = file.path() + " " + error.message;
  return std::unexpected(std::move(error));
}

Result<std::optional<std::string>> ReadHookFile(const HookFile& file) {
  const auto directory =
      OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY);
  if (!directory && directory.error().code == ENOENT) {
    return std::optional<std::string>();
  }
  if (!directory) {
    return Fail(directory.error().code, "cannot open " + file.directory);
  }
  auto text = ReadWholeFile(directory->get(), file.name, kMaxConfiguration);
  if (text) return std::optional(std::move(*text));
  if (text.error().code == ENOENT) return std::optional<std::string>();
  return Fail(text.error().code,
              "cannot read " + file.path() +
                  ", which must be a file of at most 4 MiB without symbolic "
                  "links on the way",
              "in an empty directory, `txfs hook install HOST --project "
              "--dry-run` prints what to insert");
}

/// Makes the directories of `name` in `directory`, and follows no link there.
Status MakeParents(int directory, const std::string& name, mode_t mode) {
  for (size_t slash = name.find('/'); slash != std::string::npos;
       slash = name.find('/', slash + 1)) {
    const std::string parent = name.substr(0, slash);
    const auto there = StatBelow(directory, parent);
    if (there && S_ISDIR(there->st_mode)) continue;
    TRY(MakeDirectoryAt(directory, parent, mode));
  }
  return {};
}

Status WriteHookFile(const HookFile& file, HookScope scope,
                     const std::string& text) {
  const bool is_shared = scope == HookScope::kProject;
  if (!is_shared) TRY(MakeDirectories(file.directory));
  const UniqueFd directory =
      TRY(OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY));
  TRY(MakeParents(directory.get(), file.name, is_shared ? 0755 : 0700));
  const auto there = StatBelow(directory.get(), file.name);
  const mode_t fresh = is_shared ? 0644 : 0600;
  return ReplaceFile(directory.get(), file.name, text,
                     there ? there->st_mode & 0777 : fresh);
}

/// Removes the file, and the directories on the way to it that are empty then.
Status RemoveHookFile(const HookFile& file) {
  const UniqueFd directory =
      TRY(OpenAt(AT_FDCWD, file.directory, O_RDONLY | O_DIRECTORY));
  std::string name = file.name;
  const size_t last = name.rfind('/');
  const std::string parent =
      last == std::string::npos ? "." : name.substr(0, last);
  const UniqueFd holder = TRY(OpenDirectoryBelow(directory.get(), parent));
  if (::unlinkat(holder.get(), name.substr(last + 1).c_str(), 0) != 0) {
    return Fail(errno, "cannot remove " + file.path());
  }
  for (size_t slash = last; slash != std::string::npos;) {
    name.resize(slash);
    slash = name.rfind('/');
    const auto above = OpenDirectoryBelow(
        directory.get(),
        slash == std::string::npos ? "." : name.substr(0, slash));
    const std::string base =
        slash == std::string::npos ? name : name.substr(slash + 1);
    if (!above || ::unlinkat(above->get(), base.c_str(), AT_REMOVEDIR) != 0) {
      break;
    }
  }
  return {};
}

Result<const HookHost*> HostNamed(const std::string& name) {
  if (const HookHost* host = FindHookHost(name)) return host;
  return Fail(ErrorKind::kUsage, 0, "there is no host \"" + name + "\"",
              "the hosts are " + Join(HookHosts(), [](const HookHost& host) {
                return std::string(host.name);
              }));
}

Status PrintText(const std::string& text) {
  Output output;
  output.Write(text);
  return output.Finish();
}

}  // namespace

Result<std::string> WithHook(const HookHost& host,
                             const std::optional<std::string>& text) {
  if (host.events.empty()) {
    if (!text || IsOurProgram(host, *text)) return std::string(host.program);
    return IsNotUsable("exists, and txfs did not make it");
  }
  Document document = Document::object();
  if (text) document = TRY(ParseConfiguration(*text));
  const Document before = document;
  if (host.has_version && !document.contains("version")) {
    document["version"] = 1;
  }
  Document* hooks = TRY(HooksOf(document));
  for (const HookHost::Event& event : host.events) {
    TRY(AddEvent(host, event, *hooks));
  }
  if (text && document == before) return *text;
  return FormattedLike(document, text.value_or(""));
}

Result<std::optional<std::string>> WithoutHook(const HookHost& host,
                                               const std::string& text) {
  if (host.events.empty()) {
    if (IsOurProgram(host, text)) return std::optional<std::string>();
    return IsNotUsable("was not made by txfs");
  }
  Document document = TRY(ParseConfiguration(text));
  const Document before = document;
  if (document.contains("hooks") && document["hooks"].is_object()) {
    Document& hooks = document["hooks"];
    for (const HookHost::Event& event : host.events) {
      const std::string name(event.name);
      if (!hooks.contains(name) || !hooks[name].is_array()) continue;
      const bool was_empty = hooks[name].empty();
      StripList(host, hooks[name]);
      if (hooks[name].empty() && !was_empty) hooks.erase(name);
    }
    if (hooks.empty() && document != before) document.erase("hooks");
  }
  if (document == before) return std::optional(text);
  if (IsBare(host, document)) return std::optional<std::string>();
  return std::optional(FormattedLike(document, text));
}

bool IsHookInstalled(const HookHost& host, HookScope scope,
                     const std::string& directory) {
  const auto text = ReadHookFile(FileOf(host, scope, directory));
  if (!text || !*text) return false;
  const auto without = WithoutHook(host, **text);
  return without && (!*without || **without != **text);
}

Result<int> RunHookInstall(const Context& context,
                           const HookInstallArguments& arguments) {
  const HookHost& host = *TRY(HostNamed(arguments.host));
  const HookFile file = FileOf(host, arguments.scope, context.directory);
  TRY(CheckWay(context.directory, file.directory));
  const auto before = TRY(ReadHookFile(file));
  const auto after = WithHook(host, before);
  if (!after) return AtFile(file, after.error());
  if (arguments.dry_run) {
    Say(file.path());
    TRY(PrintText(*after));
    return 0;
  }
  if (before && *before == *after) {
    SayResult(file.path() + " has the hook already");
  } else {
    TRY(WriteHookFile(file, arguments.scope, *after));
    SayResult("installed in " + file.path());
  }
  Say("note: " + std::string(host.then));
  if (FindProgram("txfs").empty()) {
    Say("warning: txfs is not in PATH, where the host looks for it");
  }
  return 0;
}

Result<int> RunHookUninstall(const Context& context,
                             const HookInstallArguments& arguments) {
  const HookHost& host = *TRY(HostNamed(arguments.host));
  const HookFile file = FileOf(host, arguments.scope, context.directory);
  TRY(CheckWay(context.directory, file.directory));
  const auto before = TRY(ReadHookFile(file));
  auto after = before ? WithoutHook(host, *before)
                      : Result<std::optional<std::string>>();
  if (!after) return AtFile(file, after.error());
  if (arguments.dry_run) {
    Say(file.path());
    TRY(PrintText(after->value_or("")));
    return 0;
  }
  if (before == *after) {
    SayResult(file.path() + " has no hook of txfs");
    return 0;
  }
  if (*after) {
    TRY(WriteHookFile(file, arguments.scope, **after));
  } else {
    TRY(RemoveHookFile(file));
  }
  SayResult("removed from " + file.path());
  return 0;
}

}  // namespace txfs::cli

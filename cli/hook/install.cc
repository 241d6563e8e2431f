#include "cli/hook/install.h"

#include <algorithm>
#include <utility>

#include "cli/hook/installed.h"
#include "cli/locate/way.h"
#include "cli/output/errors.h"
#include "cli/output/output.h"
#include "cli/output/text.h"
#include "cli/run/sandbox_probes.h"

namespace txfs::cli {
namespace {

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

bool CallsHook(const HookHost& host, const Document& handler) {
  return !ProgramOfHook(host, handler).empty();
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
  Document others = list;
  const auto there = std::ranges::find(others, element);
  const bool is_there = there != others.end();
  if (is_there) others.erase(there);
  Document stripped = others;
  StripList(host, stripped);
  if (is_there && stripped == others) return {};
  // An earlier version of txfs may have put another entry there.
  list = std::move(stripped);
  list.push_back(std::move(element));
  return {};
}

/// Whether `document` has nothing but what an installation adds to no file.
bool IsBare(const HookHost& host, const Document& document) {
  if (document.empty()) return true;
  return host.has_version && document.size() == 1 &&
         document.contains("version");
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

Result<std::optional<std::string>> WithHook(
    const HookHost& host, const std::optional<std::string>& text) {
  if (host.events.empty()) {
    if (!text || IsOurProgram(host, *text)) {
      return std::optional(std::string(host.program));
    }
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
  if (text && document == before) return text;
  return std::optional(FormattedLike(document, text.value_or("")));
}

Result<std::optional<std::string>> WithoutHook(
    const HookHost& host, const std::optional<std::string>& text) {
  if (!text) return text;
  if (host.events.empty()) {
    if (IsOurProgram(host, *text)) return std::optional<std::string>();
    return IsNotUsable("was not made by txfs");
  }
  Document document = TRY(ParseConfiguration(*text));
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
  if (document == before) return text;
  if (IsBare(host, document)) return std::optional<std::string>();
  return std::optional(FormattedLike(document, *text));
}

Result<int> RunHookInstall(const Context& context,
                           const HookInstallArguments& arguments) {
  const HookHost& host = *TRY(HostNamed(arguments.host));
  const HookFile file = FileOf(host, arguments.scope, context.directory);
  TRY(CheckWay(context.directory, file.directory));
  const auto before = TRY(ReadHookFile(file));
  const auto edited =
      arguments.removes ? WithoutHook(host, before) : WithHook(host, before);
  if (!edited) {
    Error error = edited.error();
    error.message = file.path() + " " + error.message;
    return std::unexpected(std::move(error));
  }
  const std::optional<std::string>& after = *edited;
  if (arguments.dry_run) {
    Say(file.path());
    TRY(PrintText(after.value_or("")));
    return 0;
  }
  if (before != after) {
    TRY(after ? WriteHookFile(file, arguments.scope, *after)
              : RemoveHookFile(file));
  }
  const std::string path = file.path();
  if (arguments.removes) {
    SayResult(before == after ? path + " has no hook of txfs"
                              : "removed from " + path);
    return 0;
  }
  SayResult(before == after ? path + " has the hook already"
                            : "installed in " + path);
  Say("note: " + std::string(host.then));
  if (FindProgram("txfs").empty()) {
    Say("warning: txfs is not in PATH, where the host looks for it");
  }
  return 0;
}

}  // namespace txfs::cli

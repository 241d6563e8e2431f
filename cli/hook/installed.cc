#include "cli/hook/installed.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <regex>
#include <string_view>
#include <utility>

#include "cli/output/paths.h"

namespace txfs::cli {
namespace {

constexpr size_t kMaxMatcher = 1000;

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

/// A handler that calls the hook, with the matcher of its element.
struct Handler {
  Document json;
  std::string matcher;  ///< "": of each tool
};

std::string TextAt(const Document& object, const char* key) {
  if (!object.contains(key) || !object[key].is_string()) return "";
  return object[key].get<std::string>();
}

/// Of the list of an event.
std::vector<Handler> HandlersIn(const HookHost& host, const Document& list) {
  std::vector<Handler> found;
  const auto add = [&](const Document& handler, const std::string& matcher) {
    if (!ProgramOfHook(host, handler).empty()) {
      found.push_back({handler, matcher});
    }
  };
  for (const Document& element : list) {
    if (!element.is_object()) continue;
    const std::string matcher = TextAt(element, "matcher");
    add(element, matcher);
    if (!element.contains("hooks") || !element["hooks"].is_array()) continue;
    for (const Document& handler : element["hooks"]) add(handler, matcher);
  }
  return found;
}

bool IsListOfNames(const std::string& matcher) {
  return std::ranges::all_of(matcher, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("_-,| ").find(static_cast<char>(c)) !=
               std::string_view::npos;
  });
}

bool ListsName(std::string_view names, std::string_view name) {
  while (!names.empty()) {
    const size_t end = std::min(names.find_first_of(",|"), names.size());
    std::string_view listed = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    while (listed.starts_with(' ')) listed.remove_prefix(1);
    while (listed.ends_with(' ')) listed.remove_suffix(1);
    if (listed == name) return true;
  }
  return false;
}

bool Matches(const HookHost& host, const std::string& matcher,
             std::string_view tool) {
  if (matcher.empty() || matcher == "*") return true;
  if (host.lists_names && IsListOfNames(matcher)) {
    return ListsName(matcher, tool);
  }
  if (matcher.size() > kMaxMatcher) return false;
  try {
    return std::regex_search(tool.begin(), tool.end(), std::regex(matcher));
  } catch (const std::regex_error&) {
    return false;
  }
}

/// Why the host does not call the hook for `event`; "": it does.
std::string FaultOf(const HookHost& host, const HookHost::Event& event,
                    const std::vector<Handler>& handlers) {
  const std::string name(event.name);
  if (handlers.empty()) return "has no entry of the hook for " + name;
  const Document ours = Document::parse(event.element, nullptr, false);
  const std::string type =
      TextAt(ours.contains("hooks") ? ours["hooks"][0] : ours, "type");
  for (const Handler& handler : handlers) {
    if (TextAt(handler.json, "type") != type) {
      return "has an entry of the hook for " + name + " without \"type\": \"" +
             type + "\"";
    }
  }
  const auto is_matched = [&](std::string_view tool) {
    return std::ranges::any_of(handlers, [&](const Handler& handler) {
      return Matches(host, handler.matcher, tool);
    });
  };
  for (const HostTool& tool : host.tools) {
    if (ours.contains("matcher") && !is_matched(tool.name)) {
      return "has a matcher for " + name + " that leaves out the tool " +
             std::string(tool.name);
    }
  }
  // It is of the tool's arguments.
  const bool is_narrow = !ours.contains("matcher") && !is_matched("");
  return is_narrow ? "has a matcher for " + name : "";
}

/// The member of `document` by which no hook is called, or not that of txfs;
/// "": none. Claude Code and Copilot CLI have the first.
std::string SwitchedOff(const Document& document) {
  if (document.contains("disableAllHooks") &&
      document["disableAllHooks"] == true) {
    return "disableAllHooks";
  }
  // Of Gemini CLI.
  if (!document.contains("hooksConfig")) return "";
  const Document& settings = document["hooksConfig"];
  if (!settings.is_object()) return "";
  if (settings.contains("enabled") && settings["enabled"] == false) {
    return "hooksConfig.enabled";
  }
  const bool is_listed =
      settings.contains("disabled") && settings["disabled"].is_array() &&
      std::ranges::find(settings["disabled"], Document("txfs")) !=
          settings["disabled"].end();
  return is_listed ? "hooksConfig.disabled" : "";
}

std::string Reinstall(const HookHost& host, HookScope scope) {
  return "`txfs hook install " + std::string(host.name) +
         (scope == HookScope::kProject ? " --project" : "") +
         "` writes it anew";
}

std::string TurnOn(const std::string& member) {
  return "remove \"" + member + "\" there, or take txfs out of it";
}

/// The fault of a file in which the host finds no hook, if it switches all
/// hooks off.
std::optional<InstalledHook> ReadSwitch(const HookFile& file) {
  const auto text = ReadHookFile(file);
  if (!text || !*text || !ParseStrictly(**text).is_object()) {
    return std::nullopt;
  }
  const std::string off = SwitchedOff(Document::parse(**text, nullptr, false));
  if (off.empty()) return std::nullopt;
  return InstalledHook{.file = file.path(),
                       .programs = {},
                       .fault = "switches hooks off, by \"" + off + "\"",
                       .remedy = TurnOn(off)};
}

}  // namespace

std::string ProgramOfHook(const HookHost& host, const Document& handler) {
  if (!handler.is_object()) return "";
  const std::vector<std::string> words = WordsOf(handler);
  if (words.size() != 3) return "";
  const std::string& program = words[0];
  const bool is_ours = program.substr(program.rfind('/') + 1) == "txfs" &&
                       words[1] == "hook" && words[2] == host.name;
  return is_ours ? program : "";
}

bool IsOurProgram(const HookHost& host, const std::string& text) {
  const std::string_view first =
      host.program.substr(0, host.program.find('\n') + 1);
  return text.starts_with(first);
}

std::optional<InstalledHook> ReadInstalled(const HookHost& host,
                                           HookScope scope,
                                           const std::string& text) {
  InstalledHook hook{.scope = scope, .file = {}, .programs = {}};
  hook.remedy = Reinstall(host, scope);
  if (host.events.empty()) {
    if (!IsOurProgram(host, text)) return std::nullopt;
    hook.programs = {"txfs"};
    if (text != host.program) hook.fault = "is not the plugin of this txfs";
    return hook;
  }
  if (!ParseStrictly(text).is_object()) {
    if (!text.contains("txfs") || !text.contains(host.name)) {
      return std::nullopt;
    }
    hook.fault =
        "names the hook, and is not a JSON object without comments: txfs "
        "cannot tell whether the host calls it";
    hook.remedy = "correct the file";
    return hook;
  }
  const Document document = Document::parse(text, nullptr, false);
  if (!document.contains("hooks") || !document["hooks"].is_object()) {
    return std::nullopt;
  }
  const Document& hooks = document["hooks"];
  for (const HookHost::Event& event : host.events) {
    const std::string name(event.name);
    std::vector<Handler> handlers;
    if (hooks.contains(name)) handlers = HandlersIn(host, hooks[name]);
    for (const Handler& handler : handlers) {
      hook.programs.push_back(ProgramOfHook(host, handler.json));
    }
    if (hook.fault.empty()) hook.fault = FaultOf(host, event, handlers);
  }
  if (hook.programs.empty()) return std::nullopt;
  if (const std::string off = SwitchedOff(document); !off.empty()) {
    hook.fault = "switches hooks off, by \"" + off + "\"";
    hook.remedy = TurnOn(off);
  }
  return hook;
}

std::vector<InstalledHook> FindInstalled(const HookHost& host,
                                         const std::string& directory) {
  std::vector<InstalledHook> found;
  std::vector<InstalledHook> switches;
  for (const HookScope scope : {HookScope::kUser, HookScope::kProject}) {
    const HookFile file = FileOf(host, scope, directory);
    const auto text = ReadHookFile(file);
    if (!text || !*text) continue;
    if (auto hook = ReadInstalled(host, scope, **text)) {
      hook->file = file.path();
      found.push_back(std::move(*hook));
    } else if (auto off = ReadSwitch(file)) {
      switches.push_back(std::move(*off));
    }
  }
  if (found.empty()) return found;
  if (!host.local_file.empty()) {
    if (auto off = ReadSwitch({directory, std::string(host.local_file)})) {
      switches.push_back(std::move(*off));
    }
  }
  std::ranges::move(switches, std::back_inserter(found));
  return found;
}

}  // namespace txfs::cli

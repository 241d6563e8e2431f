#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/hook/hook_call.h"
#include "cli/hook/tools.h"
#include "cli/output/json.h"

namespace txfs::cli {

/// An agent's host: how it calls a hook, what it understands as an answer, and
/// where it is configured. docs/agents.md has the sources of these facts.
struct HookHost {
  std::string_view name;            ///< as in `txfs hook NAME`
  std::span<const HostTool> tools;  ///< whose calls are judged
  /// Of one object on stdin. The directory is empty if the host names none.
  HookCall (*read)(const Json& input);
  HookOutput (*write)(const HookCall& call, const HookAnswer& answer);
  /// Whether it asks the user if the answer demands it. If not, the hook
  /// refuses what it would ask about.
  bool asks = false;
  /// Refuses a call of which nothing is known, because of `why`.
  HookOutput (*refuse)(const std::string& why);

  /// The variable that names the directory of the user's configuration; else
  /// `user_directory` in the home.
  const char* variable;
  std::string_view user_directory;
  std::string_view user_file;     ///< in that directory
  std::string_view project_file;  ///< in the project's directory
  /// Another file of the project, which can switch hooks off; "": none.
  std::string_view local_file = {};
  /// The events of the file for which the hook is called, each with an element
  /// of its list as JSON. None: the file is `program`.
  struct Event {
    std::string_view name;
    std::string_view element;
  };
  std::vector<Event> events;
  /// A matcher without special characters is a list of names, and not a regular
  /// expression.
  bool lists_names = false;
  /// The event after a call, of which the end is marked; "": none.
  std::string_view end_event = {};
  bool has_version = false;  ///< the file has "version": 1
  std::string_view program = {};
  std::string_view then;  ///< what the host asks for after an installation
};

/// All hosts, in the order of --help.
[[nodiscard]] std::span<const HookHost> HookHosts();
/// Null if there is none of this name.
[[nodiscard]] const HookHost* FindHookHost(std::string_view name);

}  // namespace txfs::cli

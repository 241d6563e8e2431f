#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/event.h"
#include "policy/glob.h"

namespace txfs::policy {

/// Where a rule stands, for messages.
struct Place {
  std::string file;
  uint32_t line = 0;

  [[nodiscard]] std::string ToString() const {
    return file + ":" + std::to_string(line);
  }
};

/// What is to happen to an operation; the later, the stronger.
enum class Action : uint8_t {
  kAllow,
  kAudit,  ///< allowed, and noted in the log
  kHook,   ///< a program decides
  kAsk,    ///< a person decides
  kDeny,
};
[[nodiscard]] std::string_view NameOf(Action action);
[[nodiscard]] std::optional<Action> ActionNamed(std::string_view name);

/// Who does it, and to what: a part of a rule.
struct Condition {
  std::vector<Glob> paths;            ///< any of them
  std::vector<std::string> patterns;  ///< the same as they were written
  std::optional<Layer> layer;
  std::vector<Type> types;     ///< any of them
  std::vector<Glob> exes;      ///< any of them; paths of programs
  std::vector<uint32_t> uids;  ///< any of them

  [[nodiscard]] bool empty() const {
    return paths.empty() && !layer && types.empty() && exes.empty() &&
           uids.empty();
  }
};

/// An operation that a rule says it is about, or that it is not.
struct Example {
  Op op = Op::kWrite;
  std::string path;
  bool matches = true;
};

/// An [[fs]] rule.
struct Rule {
  std::string id;
  Mask ops = kEverything;  ///< an event is meant that has one of them
  Condition when;          ///< all that is given must hold
  /// Not if all that is given in one of them holds.
  std::vector<Condition> unless;
  bool nocase = false;  ///< of its paths
  /// Also what comes or goes with a directory that is renamed, when the rule is
  /// about both of its paths.
  bool with_directory = true;
  Action action = Action::kDeny;
  int error = EPERM;
  std::string reason;   ///< why, for people and agents
  std::string suggest;  ///< what to do instead
  Place place;
  std::vector<Example> examples;  ///< each holds, of this rule alone
};

}  // namespace txfs::policy

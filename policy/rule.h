#pragma once

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policy/content.h"
#include "policy/event.h"
#include "policy/glob.h"

namespace txfs::policy {

/// The place of a rule in a file, for messages.
struct Place {
  std::string file;
  uint32_t line = 0;

  [[nodiscard]] std::string ToString() const {
    return file + ":" + std::to_string(line);
  }
};

/// What happens to an operation; weaker actions come first.
enum class Action : uint8_t {
  kAllow,
  kAudit,  ///< allowed, and recorded in the log
  kHold,   ///< allowed and recorded; a commit stops until a user accepts it
  kHook,   ///< a program decides
  kAsk,    ///< a person decides
  kDeny,
};
[[nodiscard]] std::string_view NameOf(Action action);
[[nodiscard]] std::optional<Action> ActionNamed(std::string_view name);

/// The part of a rule that matches program, user and object.
struct Condition {
  std::vector<Glob> paths;            ///< any of them
  std::vector<std::string> patterns;  ///< the text of the globs
  std::optional<Layer> layer;
  std::vector<Type> types;     ///< any of them
  std::vector<Glob> exes;      ///< any of them; paths of programs
  std::vector<uint32_t> uids;  ///< any of them

  [[nodiscard]] bool empty() const {
    return paths.empty() && !layer && types.empty() && exes.empty() &&
           uids.empty();
  }
};

/// An operation that a rule must match, or must not match.
struct Example {
  Op op = Op::kWrite;
  std::string path;
  bool matches = true;
};

/// An [[fs]] rule.
struct Rule {
  std::string id;
  Mask ops = kEverything;  ///< matches events that have one of them
  Condition when;          ///< everything that is set must hold
  /// Exceptions: the rule does not match if everything that is set in one of
  /// them holds.
  std::vector<Condition> unless;
  bool nocase = false;  ///< for its paths
  /// If false, the rule does not match names that move with a renamed directory
  /// if it matches both of their paths.
  bool with_directory = true;
  Action action = Action::kDeny;
  /// kHold: which content of a file is held.
  ContentKind content = ContentKind::kAny;
  int error = EPERM;
  std::string reason;   ///< for users and agents
  std::string suggest;  ///< what to do instead
  Place place;
  std::vector<Example> examples;  ///< checked against this rule alone
};

}  // namespace txfs::policy

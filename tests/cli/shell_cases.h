#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "cli/shell/judge.h"
#include "policy/exec_rule.h"
#include "policy/sources.h"

namespace txfs::cli {

/// The built-in rules.
inline const policy::Policy& BuiltinRules() {
  static const auto kRules =
      policy::LoadSources({.builtin = true, .files = {}, .examples = true}, -1);
  static const policy::Policy kNone;
  return kRules ? **kRules : kNone;
}

inline ShellStart ExampleStart() {
  const policy::Surroundings& around = policy::ExampleSurroundings();
  return {.surroundings = around, .directory = around.workspace};
}

/// The verdict of the built-in rules on `text` in /home/user/project.
inline CommandVerdict VerdictOn(
    std::string_view text,
    policy::Confinement confinement = policy::Confinement::kNone) {
  return Judge(BuiltinRules(), ReadShellText(text, ExampleStart()),
               policy::ExampleSurroundings(), confinement);
}

[[nodiscard]] inline bool IsHindered(const CommandVerdict& verdict) {
  return verdict.action > policy::Action::kAudit;
}

/// Whether the rule `id` matches a part.
[[nodiscard]] inline bool IsMatchedBy(const CommandVerdict& verdict,
                                      std::string_view id) {
  for (const PartVerdict& part : verdict.parts) {
    for (const ExecMatch& match : part.matches) {
      if (match.rule->id == id) return true;
    }
  }
  return false;
}

}  // namespace txfs::cli

#pragma once

#include <string>
#include <vector>

#include "cli/shell/part.h"
#include "cli/shell/reader.h"
#include "policy/exec_rule.h"
#include "policy/policy.h"

namespace txfs::cli {

/// A rule that matches a part, and what it comes to where the part will run.
struct ExecMatch {
  const policy::ExecRule* rule = nullptr;
  policy::Action action = policy::Action::kAllow;
};

/// The judgement of one part.
struct PartVerdict {
  policy::Action action = policy::Action::kAllow;
  policy::Class consequence = policy::Class::kUnknown;
  bool reads_only = false;
  std::vector<ExecMatch> matches;  ///< in the order of the rules
  /// The index of the match that decides; -1: none matches.
  int decider = -1;
};

/// The judgement of shell text: the strongest of its parts.
struct CommandVerdict {
  ShellReading reading;
  std::vector<PartVerdict> parts;  ///< for each part of `reading`
  policy::Action action = policy::Action::kAllow;
  policy::Class consequence = policy::Class::kUndoable;
  bool reads_only = true;
  int decider = -1;  ///< the index of the part that decides; -1: none
  policy::Confinement confinement = policy::Confinement::kNone;

  /// The rule that decides; null: none.
  [[nodiscard]] const policy::ExecRule* rule() const;
};

/// Judges `reading` by `rules`, which must outlive the verdict. Pure.
[[nodiscard]] CommandVerdict Judge(const policy::Policy& rules,
                                   ShellReading reading,
                                   const policy::Surroundings& surroundings,
                                   policy::Confinement confinement);

}  // namespace txfs::cli

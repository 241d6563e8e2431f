#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/locate/context.h"
#include "cli/protocol/client.h"
#include "cli/protocol/judgement.h"
#include "cli/rules/command_start.h"
#include "cli/rules/policy_rules.h"
#include "fs/host/mount_table.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// The directory in which a command, or another tool of an agent, works: what
/// confines it there, and the rules. Reaches the daemon of the mount around it
/// on demand.
class CallSite {
 public:
  /// `directory`: absolute.
  explicit CallSite(std::string directory);

  [[nodiscard]] const Context& context() const { return context_; }
  /// The mount around the directory.
  [[nodiscard]] const std::optional<MountEntry>& mount() const {
    return mount_;
  }
  /// Whether the directory is in a mount that `txfs run` confines, together
  /// with this process.
  [[nodiscard]] bool is_in_run() const { return in_run_; }
  Result<CommandStart> Start() const;

  /// What answers for the mount around the directory, or for the run around
  /// this process; null: there is none, or it does not answer.
  Client* Daemon();
  /// The rules where there is no Daemon. Never null.
  Result<Rules> LoadRules();
  /// Why the rules may not be all that hold; "": they are all.
  [[nodiscard]] const std::string& doubt() const { return doubt_; }

  /// The verdict of the rules on a program with its arguments, which will run
  /// in `confinement`.
  Result<RuleVerdict> JudgeWords(const std::vector<std::string>& words,
                                 policy::Confinement confinement);
  /// The verdict of the rules on a command, or on an operation. Fails if the
  /// command could not be parsed because the parser does not work.
  Result<RuleVerdict> JudgeParts(ShellReading reading,
                                 const CommandStart& start);
  Result<RuleVerdict> JudgeOperation(const policy::Proposal& proposal);

 private:
  Result<std::unique_ptr<Connection>> Reach() const;

  Context context_;
  std::optional<MountEntry> mount_;
  bool in_run_ = false;
  bool has_tried_ = false;
  std::unique_ptr<Client> daemon_;
  Rules rules_;
  std::string doubt_;
};

}  // namespace txfs::cli

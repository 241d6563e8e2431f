#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/diff/diff_print.h"
#include "cli/locate/context.h"
#include "cli/mount/mount_arguments.h"
#include "journal/call_mark.h"
#include "journal/support/result.h"

namespace txfs::cli {

/// Each command returns the exit code of the process, or the error to report.
Result<int> RunMount(const Context& context, const MountArguments& arguments);

struct UmountArguments {
  std::optional<std::string> directory;
  bool lazy = false;
};
Result<int> RunUmount(const Context& context, const UmountArguments& arguments);

struct AdoptArguments {
  std::optional<std::string> workspace;
  /// A store, or the workspace's path before it was moved; none: the store in
  /// the workspace.
  std::optional<std::string> from;
  bool yes = false;
};
/// Shows the open transactions of a store that was made elsewhere; with `yes`,
/// adopts them.
Result<int> RunAdopt(const Context& context, const AdoptArguments& arguments);

/// Does not return on success.
Result<int> RunEnter(const Context& context,
                     const std::optional<std::string>& workspace);

Result<int> RunStatus(const Context& context, bool json);
Result<int> RunList(const Context& context, bool json);
struct CommitArguments {
  std::vector<std::string> paths;  ///< none: everything
  std::string message;
  bool dry_run = false;
  std::string on_conflict = "fail";
  bool markers = false;
  std::vector<std::string> accepted;  ///< ids of limits
  bool json = false;
};
Result<int> RunCommit(const Context& context, const CommitArguments& arguments);
Result<int> RunDiscard(const Context& context,
                       const std::vector<std::string>& paths, bool json);
/// An empty name: as in Workspace.
Result<int> RunSavepoint(const Context& context, const std::string& name,
                         bool json);
/// `call`: goes back to before this call instead.
Result<int> RunRollback(const Context& context, const std::string& name,
                        const std::optional<std::string>& call, bool json);

/// Marks a tool call of an agent.
Result<int> RunMarkCall(const Context& context, const CallMark& mark,
                        bool json);
/// Lists the calls of the transaction.
Result<int> RunCalls(const Context& context, bool json);
/// Exit code 3 if later changes are built on the call.
Result<int> RunRevert(const Context& context, const std::string& call,
                      bool json);

/// Tries what `txfs run` needs for `workspace` (none: the working directory).
/// Exit code 1 if it would not work.
Result<int> RunDoctor(const Context& context,
                      const std::optional<std::string>& workspace, bool json);

/// Exit code 1 if there are problems.
Result<int> RunFsck(const Context& context, bool json);

struct LogArguments {
  std::optional<std::string> path, op;
  uint64_t last = 0;  ///< 0: all
  bool denied = false;
  bool follow = false;
  bool json = false;
};
Result<int> RunLog(const Context& context, const LogArguments& arguments);

/// Shows the last denial at or below `path`. Exit code 0, even if there is
/// none.
Result<int> RunWhy(const Context& context, const std::string& path, bool json);

/// Lists the questions of rules that wait for an answer.
Result<int> RunPending(const Context& context, bool json);
/// Answers the questions with these ids.
Result<int> RunAnswer(const Context& context,
                      const std::vector<std::string>& ids, bool yes);

struct DiffArguments {
  std::vector<std::string> paths;
  DiffStyle style;
  bool json = false;
  bool no_pager = false;
  std::optional<std::string> since;  ///< a savepoint
  std::optional<std::string> call;   ///< only the changes of this call
};
Result<int> RunDiff(const Context& context, const DiffArguments& arguments);

/// `transaction`: a name or the beginning of an id, if -t is not given. Without
/// both, the newest commit that can be undone.
Result<int> RunUndo(const Context& context,
                    const std::optional<std::string>& transaction, bool json);

struct ShowArguments {
  std::optional<std::string> transaction;  ///< as in RunUndo, but required
  DiffStyle style;
  bool json = false;
  bool no_pager = false;
};
Result<int> RunShow(const Context& context, const ShowArguments& arguments);

/// Exit code 1, with the error, if the file is not a valid policy.
Result<int> RunPolicyCheck(const Context& context, const std::string& file);
/// Exit code 1 if there are warnings.
Result<int> RunPolicyLint(const Context& context,
                          const std::optional<std::string>& file);
/// Shows the policy in force. `directory`: in the mount or workspace; none: the
/// working directory.
Result<int> RunPolicyShow(const Context& context,
                          const std::optional<std::string>& directory,
                          bool json);
/// `directory`: in the mount; none: the working directory.
Result<int> RunPolicyReload(const Context& context,
                            const std::optional<std::string>& directory);
struct PolicyExplainArguments {
  std::optional<std::string> file;  ///< none: the rules in force
  std::string op, path, new_path;   ///< new_path may be empty
  std::string exe;
  std::string type;  ///< may be empty
  bool is_new = false;
  bool is_empty = false;
  bool confined = false;  ///< the command runs in `txfs run`
  bool json = false;
};
/// Shows the verdict of the policy on an operation.
Result<int> RunPolicyExplain(const Context& context,
                             const PolicyExplainArguments& arguments);
/// Shows the verdict on the command `context.trailing`: shell text if it is one
/// word, else a program and its arguments.
Result<int> RunPolicyExplainCommand(const Context& context,
                                    const PolicyExplainArguments& arguments);
struct PolicyTestArguments {
  std::optional<std::string> file;   ///< none: the rules in force
  std::optional<std::string> cases;  ///< none: the examples of the rules
};
/// Exit code 1 if a case fails.
Result<int> RunPolicyTest(const Context& context,
                          const PolicyTestArguments& arguments);

/// Frees the stores of workspaces that are gone.
Result<int> RunGcGone(bool json);
Result<int> RunGc(const Context& context, const KeepArguments& keep, bool json);

}  // namespace txfs::cli

#pragma once

#include <functional>
#include <map>
#include <string>

#include "fs/base/base_directory.h"
#include "fs/commit/commit_object.h"
#include "fs/vault/commit_step.h"
#include "fs/vault/vaults.h"
#include "journal/support/result.h"

namespace txfs {

/// Called after each step with how many are done, and of how many.
using CommitProgress = std::function<void(size_t done, size_t all)>;

/// Carries out the steps of a commit, or of what takes one back: all it needs
/// is the base and the vault.
class CommitRunner {
 public:
  /// `vault` outlives this.
  CommitRunner(const BaseDirectory& base, const Vault& vault,
               CommitProgress progress = {})
      : base_(base), vault_(vault), progress_(std::move(progress)) {}

  /// What is asked may leave a trace: overlays make other files of some.
  enum class Asking { kAll, kHarmless };
  /// Before the point of no return: whether the steps are ours to do, and the
  /// base's filesystem does them. An ordinary user may move, through the mount,
  /// what it may not move to a vault. EACCES, with path and remedy.
  Status CheckPermitted(const CommitSteps& steps, Asking asking = Asking::kAll);

  /// Whether the steps are such as give no program more rights than it had:
  /// set-user-ID and set-group-ID stay with a file that had them, or come back
  /// to it with an undo, and no attributes but user.* are set. EBADMSG.
  static Status CheckHarmless(const CommitSteps& steps, bool is_undo);

  /// After it: all steps in order, then a sync. Skips what an interrupted run
  /// has done, so that it can be called again until it succeeds. Does nothing
  /// to any other object than those that the steps name: EEXIST, with path and
  /// remedy, where another one stands.
  Status Run(const CommitSteps& steps, bool is_undo);

 private:
  /// A spot as a directory descriptor and a name in it.
  struct Place {
    SharedFd directory;
    std::string name;
    bool vault = false;

    [[nodiscard]] int dir() const { return directory->get(); }
  };

  Result<Place> Resolve(const Spot& spot) const;
  Result<SharedFd> OpenBase(const std::string& directory) const;
  /// Whether nothing forbids what `step` does for all users alike.
  Status CheckUnlocked(const CommitStep& step) const;
  Status Do(const CommitStep& step);
  Status Move(const CommitStep& step);
  Status Exchange(const CommitStep& step);
  Status ExchangeInSteps(const CommitStep& step, const Place& from,
                         const Place& to);
  Status FinishExchange(const CommitStep& step, const Place& from);
  static bool IsIn(const Place& place, uint64_t parent);
  /// The object `ino` at `place`; ENOENT where there is another one, or none.
  static Result<OpenObject> Find(const Place& place, uint64_t ino);
  /// Whether it is on a filesystem that the plan is about.
  [[nodiscard]] bool IsReachable(const OpenObject& object) const;
  Status Link(const CommitStep& step);
  Status Unlink(const CommitStep& step);
  Status Patch(const CommitStep& step);
  Status WriteDelta(const Delta& delta, int fd);
  Status SetAttributes(const CommitStep& step);

  /// Runs `work`, which returns 0 or -1 and errno. Where the permissions of
  /// the directory forbid it, again with the owner let in: the attributes at
  /// the end of the plan set its mode.
  Status InDirectory(int dir, const std::string& what,
                     const std::function<int()>& work);
  static void LetOwnerIn(const OpenObject& directory);

  const BaseDirectory& base_;
  const Vault& vault_;
  CommitProgress progress_;
  bool running_ = false;  ///< past the point of no return
};

/// Tests: with false, renames behave as on a filesystem that can neither
/// exchange nor refuse to replace.
void SetRenameHasFlags(bool has);
/// Tests: with false, an exchange finds that there are no hard links.
void SetExchangeHasLinks(bool has);

/// Gives an object these attributes. `path` is for messages. EEXIST: it is of
/// another type.
Status ApplyAttributes(const OpenObject& object,
                       const ObjectAttributes& attributes,
                       const std::string& path);

}  // namespace txfs

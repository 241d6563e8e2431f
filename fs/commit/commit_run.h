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

/// Called after each step with the number of steps done and of all steps.
using CommitProgress = std::function<void(size_t done, size_t all)>;

/// Carries out the steps of a commit or undo. Needs only the base and the
/// vault.
class CommitRunner {
 public:
  /// `vault` outlives this.
  CommitRunner(const BaseDirectory& base, const Vault& vault,
               CommitProgress progress = {})
      : base_(base), vault_(vault), progress_(std::move(progress)) {}

  /// Whether a check may leave a trace: on an overlay, one makes a separate
  /// file of a lower layer's hard link.
  enum class Asking { kAll, kHarmless };
  /// Call it before the point of no return. Checks that this user may carry out
  /// the steps, and that the base's filesystem supports them: an ordinary user
  /// may be able to move an object through the mount, but not to a vault.
  /// EACCES and other errors, with path and remedy.
  Status CheckPermitted(const CommitSteps& steps, Asking asking = Asking::kAll);

  /// Checks that the steps give no program more rights than it had: set-user-ID
  /// and set-group-ID stay on a file that had them, or return to it with an
  /// undo, and only user.* attributes are set. EBADMSG.
  static Status CheckHarmless(const CommitSteps& steps, bool is_undo);

  /// Call it after the point of no return. Carries out all steps in order, then
  /// syncs. Skips steps that an interrupted run has done: call it again until
  /// it succeeds. Changes only the objects that the steps name. EEXIST, with
  /// path and remedy, if another object is in the way.
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
  /// Whether the modes of the base let this user carry out `step`, which
  /// changes the object at `place`.
  static bool MayDo(const CommitStep& step, const Place& place);
  class Origins;
  /// Checks that this user may make the name `to`.
  Status CheckMayCome(const Spot& to, Origins& origins) const;
  /// Checks that no immutable or append-only flag forbids `step`.
  Status CheckUnlocked(const CommitStep& step) const;
  Status Do(const CommitStep& step);
  Status Move(const CommitStep& step);
  Status Exchange(const CommitStep& step);
  Status ExchangeInSteps(const CommitStep& step, const Place& from,
                         const Place& to);
  Status FinishExchange(const CommitStep& step, const Place& from);
  static bool IsIn(const Place& place, uint64_t parent);
  /// The object `ino` at `place`; ENOENT if there is no object, or another one.
  static Result<OpenObject> Find(const Place& place, uint64_t ino);
  /// Whether it is on a filesystem of the plan.
  [[nodiscard]] bool IsReachable(const OpenObject& object) const;
  Status Link(const CommitStep& step);
  Status Unlink(const CommitStep& step);
  Status Patch(const CommitStep& step);
  Status WriteDelta(const Delta& delta, int fd);
  /// The same for a file that was opened for appending, and only grows.
  Status AppendDelta(const Delta& delta, int fd);
  Status SetAttributes(const CommitStep& step);

  /// Runs `work`, which returns 0 or -1 and errno. On EACCES, gives the owner
  /// access to the directory and runs it again: the attributes at the end of
  /// the plan set the directory's mode.
  Status InDirectory(int dir, const std::string& what,
                     const std::function<int()>& work);
  static void LetOwnerIn(const OpenObject& directory);

  const BaseDirectory& base_;
  const Vault& vault_;
  CommitProgress progress_;
  bool running_ = false;  ///< past the point of no return
};

/// For tests. With false, renames behave as on a filesystem without
/// RENAME_EXCHANGE and RENAME_NOREPLACE.
void SetRenameHasFlags(bool has);
/// For tests. With false, an exchange behaves as if there were no hard links.
void SetExchangeHasLinks(bool has);

/// Sets the attributes of an object. `path` is for messages. `before`: what a
/// step found at an object of the base. EEXIST if it is of another type.
Status ApplyAttributes(const OpenObject& object,
                       const ObjectAttributes& attributes,
                       const std::string& path,
                       const ObjectAttributes* before = nullptr);

}  // namespace txfs

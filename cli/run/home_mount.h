#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "fs/veto/run_budget.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// What a run did in the home; paths relative to it.
struct HomeChanges {
  std::vector<std::string> kept, not_kept;
  /// Those of `not_kept` that were named, and have an effect elsewhere.
  std::vector<std::string> held;
  std::string problem;  ///< why paths that should be kept were not; may be ""
};

/// A mount of the user's home for one run, with a store of its own. A process
/// serves it until Finish, or until this process dies, and removes it then.
class HomeMount {
 public:
  /// Begins to mount `home` at `mountpoint`, an empty directory, with its store
  /// at `store`, which must not exist.
  static Result<std::unique_ptr<HomeMount>> Start(const std::string& home,
                                                  const std::string& mountpoint,
                                                  const std::string& store,
                                                  const RunLimits& limits);
  /// Waits until it is mounted.
  Status Await();
  ~HomeMount();
  HomeMount(const HomeMount&) = delete;
  HomeMount& operator=(const HomeMount&) = delete;

  /// A descriptor of the process that serves it.
  [[nodiscard]] int daemon() const { return process_.get(); }

  /// As that of a RunTransaction.
  [[nodiscard]] int limit_signal() const {
    return limit_signal_ ? limit_signal_->get() : -1;
  }

  /// Commits the changes at and below `keep`, but for `except` and those with
  /// an effect elsewhere, drops the others, and unmounts. The run's processes
  /// are gone.
  Result<HomeChanges> Finish(const std::vector<std::string>& keep,
                             const std::vector<std::string>& except = {});

 private:
  HomeMount(pid_t daemon, UniqueFd channel, std::string mountpoint,
            std::string store)
      : daemon_(daemon),
        channel_(std::move(channel)),
        mountpoint_(std::move(mountpoint)),
        store_(std::move(store)) {}

  pid_t daemon_;
  UniqueFd channel_, process_;
  std::shared_ptr<UniqueFd> limit_signal_;  ///< null: there are no limits
  const std::string mountpoint_, store_;
  bool is_finished_ = false;
};

}  // namespace txfs::cli

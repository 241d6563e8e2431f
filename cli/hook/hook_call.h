#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/shell/apply_patch.h"

namespace txfs::cli {

/// A call of a tool, as a host tells it; what the host does not tell is empty.
struct HookCall {
  std::string event;
  std::string session, turn, call, agent, tool;  ///< the host's ids
  std::string directory;                         ///< in which the tool works
  std::optional<std::string> command;            ///< shell text
  std::vector<FileUse> files;
  bool obeys_ask = true;  ///< the host does not run a call that is asked about
  /// Why the call cannot be judged, though it is of a tool that is; a sentence.
  std::string problem;
  /// Why the host may do something else than what is judged; "": it does that.
  std::string doubt;

  [[nodiscard]] bool is_judged() const {
    return command.has_value() || !files.empty();
  }
};

/// What the hook says of a call. The order is that of their strength.
enum class Decision : uint8_t {
  kAllow,   ///< it runs without a question of the host
  kSilent,  ///< the host decides
  kAsk,     ///< the user is asked
  kDeny,
};

struct HookAnswer {
  Decision decision = Decision::kSilent;
  std::string reason;  ///< not empty for kAsk and kDeny
};

/// What the process of the hook prints, and its exit code.
struct HookOutput {
  std::string out = {}, err = {};
  int code = 0;
};

}  // namespace txfs::cli

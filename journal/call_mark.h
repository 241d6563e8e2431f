#pragma once

#include <string>

namespace txfs {

/// The mark of one tool call of an agent, in the words of its host. Ids that
/// the host does not have are empty. All of it is text of other programs: any
/// bytes, of any length (BoundedMark).
struct CallMark {
  std::string host;     ///< "claude-code", "codex", ...
  std::string session;  ///< of the agent's conversation
  std::string turn;     ///< prompt or turn in the session
  std::string call;     ///< id of the tool call
  std::string agent;    ///< subagent; empty: the main one
  std::string tool;     ///< "Bash", "Edit", ...
  std::string command;  ///< shell text, or the path of a file tool
  bool end = false;     ///< the call with these ids has ended

  bool operator==(const CallMark&) const = default;
};

}  // namespace txfs

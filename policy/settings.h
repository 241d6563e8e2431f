#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace txfs::policy {

/// The time that a question waits for a user's answer if no policy file sets
/// it.
inline constexpr std::chrono::milliseconds kAskTimeout{std::chrono::minutes(2)};

/// The program that answers questions of rules with the action "hook".
struct HookSettings {
  std::vector<std::string> command;  ///< program and arguments; not empty
  std::chrono::milliseconds timeout{std::chrono::seconds(2)};
  std::string place;  ///< where it is set, for messages

  bool operator==(const HookSettings&) const = default;
};

/// The settings of policy files for answers to questions.
struct Settings {
  /// The time to wait for a user's answer; none: kAskTimeout.
  std::optional<std::chrono::milliseconds> ask_timeout;
  std::optional<HookSettings> hook;
};

}  // namespace txfs::policy

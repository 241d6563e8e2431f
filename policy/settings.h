#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace txfs::policy {

/// How long a question waits for a person where no file of rules says it.
inline constexpr std::chrono::milliseconds kAskTimeout{std::chrono::minutes(2)};

/// The program that answers questions of rules with action "hook".
struct HookSettings {
  std::vector<std::string> command;  ///< and its arguments; not empty
  std::chrono::milliseconds timeout{std::chrono::seconds(2)};
  std::string place;  ///< where it stands, for messages

  bool operator==(const HookSettings&) const = default;
};

/// What files of rules say of how questions are answered.
struct Settings {
  /// How long one waits for a person; none: kAskTimeout.
  std::optional<std::chrono::milliseconds> ask_timeout;
  std::optional<HookSettings> hook;
};

}  // namespace txfs::policy

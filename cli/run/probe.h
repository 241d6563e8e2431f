#pragma once

#include <cstdint>
#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// What a trial of something that `txfs run` needs has shown. The sentences
/// are for users.
struct Probe {
  enum class State : uint8_t {
    kOk,
    kNote,  ///< `txfs run` works all the same
    kFail,  ///< `txfs run` does not work
  };
  std::string name;  ///< stable, for programs
  State state = State::kOk;
  std::string meaning;
  std::string remedy = {};  ///< "" if there is nothing to do
};

/// The failed probe `name`, because of `error`.
[[nodiscard]] inline Probe FailedProbe(std::string name, const Error& error) {
  return {std::move(name), Probe::State::kFail, error.ToString(), error.hint};
}

}  // namespace txfs::cli

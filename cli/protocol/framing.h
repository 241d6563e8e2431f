#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/output/json.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs::cli {

/// Largest header of a request and of a reply, and largest payload, bytes.
inline constexpr size_t kRequestMax = 16 << 20;
inline constexpr size_t kReplyMax = 256 << 20;
inline constexpr size_t kPayloadMax = 1 << 20;

/// A message of the control protocol: a 32-bit little-endian length, a JSON
/// object of that length, and a payload of the length in its member "payload".
struct Frame {
  Json header = Json::object();
  std::string payload;
  /// Sent with SCM_RIGHTS. Shared, because frames are copied.
  std::shared_ptr<UniqueFd> descriptor;
  /// Length of the message that was read.
  size_t bytes = 0;
};

/// Takes one frame of a reply.
using FrameSink = std::function<Status(const Frame&)>;

/// The time at which a wait ends; none: never.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// Reads the next frame; none if the peer closed the connection before it.
/// EPROTO for invalid data, EMSGSIZE if it is longer than `limit`, ETIMEDOUT if
/// it is not complete by `deadline`. Closes descriptors other than one that
/// comes with the first bytes.
Result<std::optional<Frame>> ReadFrame(int fd, size_t limit,
                                       const Deadline& deadline = {});

/// Sends `frame` to socket `fd`.
Status WriteFrame(int fd, const Frame& frame);

}  // namespace txfs::cli

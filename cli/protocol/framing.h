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
/// object of that length, and as many bytes as its member "payload" says.
struct Frame {
  Json header = Json::object();
  std::string payload;
  /// Travels along (SCM_RIGHTS). Shared, because frames are copied.
  std::shared_ptr<UniqueFd> descriptor;
  /// How long it was, when it was read.
  size_t bytes = 0;
};

/// Takes one frame of a reply.
using FrameSink = std::function<Status(const Frame&)>;

/// Until when to wait; none: for ever.
using Deadline = std::optional<std::chrono::steady_clock::time_point>;

/// The next frame; none when the peer closed the connection before it. EPROTO
/// for anything that is no frame, EMSGSIZE when it is longer than `limit`,
/// ETIMEDOUT when it is not complete by `deadline`. A descriptor that comes
/// anywhere but with its first bytes, or beside another one, is closed.
Result<std::optional<Frame>> ReadFrame(int fd, size_t limit,
                                       const Deadline& deadline = {});

/// Sends `frame` to socket `fd`.
Status WriteFrame(int fd, const Frame& frame);

}  // namespace txfs::cli

#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/json.h"
#include "journal/base/result.h"
#include "journal/base/unique_fd.h"

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
};

/// Takes one frame of a reply.
using FrameSink = std::function<Status(const Frame&)>;

/// The next frame; none when the peer closed the connection before it. EPROTO
/// for anything that is no frame, EMSGSIZE when it is longer than `limit`.
Result<std::optional<Frame>> ReadFrame(int fd, size_t limit);

/// Sends `frame` to socket `fd`.
Status WriteFrame(int fd, const Frame& frame);

}  // namespace txfs::cli

#include "cli/framing.h"

#include <sys/socket.h>
#include <unistd.h>

#include "journal/base/bytes.h"

namespace txfs::cli {
namespace {

/// Fills `out`; returns how much came before the end of the stream.
Result<size_t> Receive(int fd, MutableByteSpan out) {
  size_t got = 0;
  while (got < out.size()) {
    const ssize_t n = ::read(fd, out.data() + got, out.size() - got);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "read from control socket");
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

/// `size` bytes, taken in pieces, so that a length that is a lie costs nothing.
Result<std::string> ReceiveText(int fd, size_t size) {
  constexpr size_t kPiece = 1 << 20;
  std::string text;
  while (text.size() < size) {
    const size_t start = text.size();
    text.resize(std::min(size, start + kPiece));
    const MutableByteSpan piece =
        std::as_writable_bytes(std::span(text)).subspan(start);
    if (TRY(Receive(fd, piece)) != piece.size()) {
      return Fail(EPROTO, "the control connection ended within a message");
    }
  }
  return text;
}

Status Send(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Fail(errno, "write to control socket");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

}  // namespace

Result<std::optional<Frame>> ReadFrame(int fd, size_t limit) {
  std::array<std::byte, 4> prefix{};
  const size_t got = TRY(Receive(fd, prefix));
  if (got == 0) return std::optional<Frame>();
  if (got != prefix.size()) {
    return Fail(EPROTO, "the control connection ended within a message");
  }
  const size_t size = Decoder(prefix).Get<uint32_t>();
  if (size > limit) return Fail(EMSGSIZE, "a control message is too long");
  const std::string text = TRY(ReceiveText(fd, size));
  Frame frame;
  frame.header = Json::parse(text, nullptr, false);
  if (!frame.header.is_object()) {
    return Fail(EPROTO, "a control message is not a JSON object");
  }
  const uint64_t payload = GetUint(frame.header, "payload");
  if (payload > kPayloadMax) {
    return Fail(EMSGSIZE, "a control message's payload is too long");
  }
  frame.payload = TRY(ReceiveText(fd, payload));
  return std::optional(std::move(frame));
}

Status WriteFrame(int fd, const Frame& frame) {
  Json header = frame.header;
  if (!frame.payload.empty()) header["payload"] = frame.payload.size();
  const std::string text = Dump(header);
  if (text.size() > kReplyMax) {
    return Fail(EMSGSIZE, "a control message is too long");
  }
  Bytes prefix;
  Encoder(prefix).Put(static_cast<uint32_t>(text.size()));
  TRY(Send(fd, AsText(prefix)));
  TRY(Send(fd, text));
  return Send(fd, frame.payload);
}

}  // namespace txfs::cli

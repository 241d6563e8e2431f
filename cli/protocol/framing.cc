#include "cli/protocol/framing.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "journal/support/bytes.h"

namespace txfs::cli {
namespace {

/// Room for the control message that carries one descriptor.
union Rights {
  cmsghdr align;
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
};

/// The descriptor that came with `message`; none is the usual case. Padding has
/// room for a second one: whatever came is ours to close.
UniqueFd TakeDescriptor(msghdr& message) {
  const cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (rights == nullptr || rights->cmsg_level != SOL_SOCKET ||
      rights->cmsg_type != SCM_RIGHTS) {
    return {};
  }
  UniqueFd first;
  const size_t count = (rights->cmsg_len - CMSG_LEN(0)) / sizeof(int);
  for (size_t i = count; i-- > 0;) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(rights) + i * sizeof fd, sizeof fd);
    first.Reset(fd);
  }
  return first;
}

/// recvmsg(2) with at most one descriptor, which replaces `descriptor`.
ssize_t ReceiveSome(int fd, MutableByteSpan out, UniqueFd* descriptor) {
  Rights rights{};
  iovec piece{.iov_base = out.data(), .iov_len = out.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = rights.bytes.data();
  message.msg_controllen = rights.bytes.size();
  const ssize_t n = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  if (n < 0) return n;
  UniqueFd taken = TakeDescriptor(message);
  if (taken.valid() && descriptor != nullptr) *descriptor = std::move(taken);
  return n;
}

std::unexpected<Error> DoesNotAnswer() {
  return Fail(ETIMEDOUT, "the daemon does not answer");
}

/// Waits until there is something to read.
Status Await(int fd, const Deadline& deadline) {
  if (!deadline) return {};
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(
        *deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return DoesNotAnswer();
    pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
    const int n = ::poll(&ready, 1, static_cast<int>(left.count()));
    if (n > 0) return {};
    if (n < 0 && errno != EINTR) return Fail(errno, "poll");
  }
}

/// Fills `out`; returns how much came before the end of the stream.
Result<size_t> Receive(int fd, MutableByteSpan out, const Deadline& deadline,
                       UniqueFd* descriptor = nullptr) {
  size_t got = 0;
  while (got < out.size()) {
    TRY(Await(fd, deadline));
    const ssize_t n = ReceiveSome(fd, out.subspan(got), descriptor);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return DoesNotAnswer();
    if (n < 0) return Fail(errno, "read from control socket");
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  return got;
}

/// `size` bytes, taken in pieces, so that a length that is a lie costs nothing.
Result<std::string> ReceiveText(int fd, size_t size, const Deadline& deadline) {
  constexpr size_t kPiece = 1 << 20;
  std::string text;
  while (text.size() < size) {
    const size_t start = text.size();
    text.resize(std::min(size, start + kPiece));
    const MutableByteSpan piece =
        std::as_writable_bytes(std::span(text)).subspan(start);
    if (TRY(Receive(fd, piece, deadline)) != piece.size()) {
      return Fail(EPROTO, "the control connection ended within a message");
    }
  }
  return text;
}

Status Send(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return DoesNotAnswer();
    if (n < 0) return Fail(errno, "write to control socket");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

/// Sends the first bytes of a frame and the descriptor with them.
Status SendWithDescriptor(int fd, std::string_view bytes, int descriptor) {
  Rights rights{};
  iovec piece{.iov_base = const_cast<char*>(bytes.data()),
              .iov_len = bytes.size()};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = rights.bytes.data();
  message.msg_controllen = rights.bytes.size();
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  ssize_t n = 0;
  while ((n = ::sendmsg(fd, &message, MSG_NOSIGNAL)) < 0) {
    if (errno != EINTR) return Fail(errno, "write to control socket");
  }
  return Send(fd, bytes.substr(static_cast<size_t>(n)));
}

}  // namespace

Result<std::optional<Frame>> ReadFrame(int fd, size_t limit,
                                       const Deadline& deadline) {
  std::array<std::byte, 4> prefix{};
  UniqueFd descriptor;
  const size_t got = TRY(Receive(fd, prefix, deadline, &descriptor));
  if (got == 0) return std::optional<Frame>();
  if (got != prefix.size()) {
    return Fail(EPROTO, "the control connection ended within a message");
  }
  const size_t size = Decoder(prefix).Get<uint32_t>();
  if (size > limit) return Fail(EMSGSIZE, "a control message is too long");
  const std::string text = TRY(ReceiveText(fd, size, deadline));
  Frame frame;
  if (descriptor.valid()) {
    frame.descriptor = std::make_shared<UniqueFd>(std::move(descriptor));
  }
  frame.header = ParseBounded(text);
  if (!frame.header.is_object()) {
    return Fail(EPROTO, "a control message is not a JSON object");
  }
  const uint64_t payload = GetUint(frame.header, "payload");
  if (payload > kPayloadMax) {
    return Fail(EMSGSIZE, "a control message's payload is too long");
  }
  frame.payload = TRY(ReceiveText(fd, payload, deadline));
  frame.bytes = prefix.size() + size + payload;
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
  if (frame.descriptor) {
    TRY(SendWithDescriptor(fd, AsText(prefix), frame.descriptor->get()));
  } else {
    TRY(Send(fd, AsText(prefix)));
  }
  TRY(Send(fd, text));
  return Send(fd, frame.payload);
}

}  // namespace txfs::cli

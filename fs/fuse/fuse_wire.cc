#include "fs/fuse/fuse_wire.h"

#include <linux/fuse.h>

#include <cstring>
#include <optional>

namespace txfs {
namespace {

thread_local bool t_write_kills_privileges = false;

template <class T>
std::optional<T> PeekAt(ByteSpan message, size_t offset) {
  if (message.size() < offset + sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, message.data() + offset, sizeof value);
  return value;
}

bool OffersKillPrivileges(ByteSpan init) {
  // Kernels before 7.36 send a shorter fuse_init_in; the flags are in both.
  constexpr size_t kFlags =
      sizeof(fuse_in_header) + offsetof(fuse_init_in, flags);
  return (PeekAt<uint32_t>(init, kFlags).value_or(0) &
          FUSE_HANDLE_KILLPRIV_V2) != 0;
}

bool KillsPrivileges(ByteSpan write) {
  const auto in = PeekAt<fuse_write_in>(write, sizeof(fuse_in_header));
  return in && (in->write_flags & FUSE_WRITE_KILL_SUIDGID) != 0;
}

bool IsReplyTo(uint64_t unique, const iovec* parts, int count) {
  if (count != 2 || parts[0].iov_len != sizeof(fuse_out_header) ||
      parts[1].iov_len < offsetof(fuse_init_out, flags) + sizeof(uint32_t)) {
    return false;
  }
  const auto* header = static_cast<const fuse_out_header*>(parts[0].iov_base);
  return header->unique == unique && header->error == 0;
}

ssize_t SendInit(int fd, const iovec* parts) {
  Bytes body(parts[1].iov_len);
  std::memcpy(body.data(), parts[1].iov_base, body.size());
  std::byte* at = body.data() + offsetof(fuse_init_out, flags);
  uint32_t flags = 0;
  std::memcpy(&flags, at, sizeof flags);
  flags |= FUSE_HANDLE_KILLPRIV_V2;
  std::memcpy(at, &flags, sizeof flags);
  const iovec patched[] = {parts[0], {body.data(), body.size()}};
  return ::writev(fd, patched, 2);
}

}  // namespace

void FuseWire::OnRequest(ByteSpan message) {
  const auto header = PeekAt<fuse_in_header>(message, 0);
  if (!header) return;
  t_write_kills_privileges =
      header->opcode == FUSE_WRITE && KillsPrivileges(message);
  if (header->opcode == FUSE_INIT && OffersKillPrivileges(message)) {
    init_ = header->unique;
  }
}

ssize_t FuseWire::Send(int fd, const iovec* parts, int count) {
  const uint64_t init = init_.load(std::memory_order_relaxed);
  if (init != 0 && IsReplyTo(init, parts, count)) {
    init_ = 0;
    return SendInit(fd, parts);
  }
  return ::writev(fd, parts, count);
}

bool FuseWire::WriteKillsPrivileges() { return t_write_kills_privileges; }

}  // namespace txfs

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

/// FUSE_NO_EXPORT_SUPPORT: Linux 6.9; not in Debian 12's headers.
constexpr uint64_t kNoExportSupport = uint64_t{1} << 38;

/// What the INIT request offers and libfuse 3.14 does not ask for.
uint64_t Offered(ByteSpan init) {
  // Kernels before 7.36 send a shorter fuse_init_in.
  const auto at = [&](size_t field) {
    return PeekAt<uint32_t>(init, sizeof(fuse_in_header) + field).value_or(0);
  };
  uint64_t flags = at(offsetof(fuse_init_in, flags));
  if ((flags & FUSE_INIT_EXT) != 0) {
    flags |= uint64_t{at(offsetof(fuse_init_in, flags2))} << 32;
  }
  return flags & (FUSE_HANDLE_KILLPRIV_V2 | kNoExportSupport);
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

void AddBits(Bytes& body, size_t field, uint32_t bits) {
  uint32_t flags = 0;
  std::memcpy(&flags, body.data() + field, sizeof flags);
  flags |= bits;
  std::memcpy(body.data() + field, &flags, sizeof flags);
}

ssize_t SendInit(int fd, const iovec* parts, uint64_t adds) {
  Bytes body(parts[1].iov_len);
  std::memcpy(body.data(), parts[1].iov_base, body.size());
  AddBits(body, offsetof(fuse_init_out, flags), static_cast<uint32_t>(adds));
  const auto high = static_cast<uint32_t>(adds >> 32);
  if (high != 0 && body.size() >= sizeof(fuse_init_out)) {
    AddBits(body, offsetof(fuse_init_out, flags), FUSE_INIT_EXT);
    AddBits(body, offsetof(fuse_init_out, flags2), high);
  }
  const iovec patched[] = {parts[0], {body.data(), body.size()}};
  return ::writev(fd, patched, 2);
}

}  // namespace

void FuseWire::OnRequest(ByteSpan message) {
  const auto header = PeekAt<fuse_in_header>(message, 0);
  if (!header) return;
  requests_.Add(header->opcode);
  t_write_kills_privileges =
      header->opcode == FUSE_WRITE && KillsPrivileges(message);
  if (header->opcode != FUSE_INIT) return;
  adds_ = Offered(message);
  if (adds_ != 0) init_ = header->unique;
}

ssize_t FuseWire::Send(int fd, const iovec* parts, int count) {
  const uint64_t init = init_.load(std::memory_order_relaxed);
  if (init != 0 && IsReplyTo(init, parts, count)) {
    init_ = 0;
    return SendInit(fd, parts, adds_);
  }
  return ::writev(fd, parts, count);
}

bool FuseWire::WriteKillsPrivileges() { return t_write_kills_privileges; }

}  // namespace txfs

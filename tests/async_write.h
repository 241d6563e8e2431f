#pragma once

#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

namespace txfs::testing {

/// Writes through io_submit(2), and waits until the write is reported done. Its
/// result: bytes, or a negative errno.
inline int64_t WriteAsynchronously(int fd, std::string_view bytes,
                                   off_t offset) {
  aio_context_t context = 0;
  if (::syscall(SYS_io_setup, 1, &context) != 0) return -errno;
  iocb request{};
  request.aio_fildes = static_cast<uint32_t>(fd);
  request.aio_lio_opcode = IOCB_CMD_PWRITE;
  request.aio_buf = reinterpret_cast<uint64_t>(bytes.data());
  request.aio_nbytes = bytes.size();
  request.aio_offset = offset;
  iocb* requests[] = {&request};
  io_event event{};
  int64_t result = -EIO;
  if (::syscall(SYS_io_submit, context, 1, requests) != 1) {
    result = -errno;
  } else if (::syscall(SYS_io_getevents, context, 1, 1, &event, nullptr) == 1) {
    result = event.res;
  }
  ::syscall(SYS_io_destroy, context);
  return result;
}

}  // namespace txfs::testing

#include "tests/fuzz/stream.h"

#include <sys/socket.h>

namespace txfs::fuzz {

UniqueFd StreamOf(std::string_view bytes) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return {};
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  const ssize_t sent = ::send(theirs.get(), bytes.data(), bytes.size(),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) return {};
  return ours;
}

}  // namespace txfs::fuzz

#include "tests/fuzz/stream.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <span>

namespace txfs::fuzz {

namespace {

constexpr size_t kMostDescriptors = 3;

/// Puts `count` times `file` into a message; `control` is room for that.
void AddDescriptors(msghdr& message, std::span<char> control, int file,
                    size_t count) {
  std::array<int, kMostDescriptors> files;
  files.fill(file);
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(rights), files.data(), count * sizeof(int));
}

}  // namespace

UniqueFd StreamOf(std::string_view bytes, size_t descriptors) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return {};
  }
  UniqueFd ours(ends[0]);
  const UniqueFd theirs(ends[1]);
  iovec piece{.iov_base = const_cast<char*>(bytes.data()),
              .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMostDescriptors * sizeof(int))>
      control{};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  const size_t count = std::min(descriptors, kMostDescriptors);
  if (count != 0) AddDescriptors(message, control, theirs.get(), count);
  const ssize_t sent =
      ::sendmsg(theirs.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(bytes.size())) return {};
  // Else what was sent along keeps the stream open.
  ::shutdown(theirs.get(), SHUT_WR);
  return ours;
}

size_t CountDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

}  // namespace txfs::fuzz

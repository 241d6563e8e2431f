#include "cli/daemon/kernel_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "journal/support/unique_fd.h"

namespace txfs::cli {

std::string ReadKernelFile(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 4096> piece{};
  while (fd.valid()) {
    const ssize_t n = ::read(fd.get(), piece.data(), piece.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return "";
    if (n == 0) break;
    text.append(piece.data(), static_cast<size_t>(n));
  }
  return text;
}

bool WriteKernelFile(const std::string& path, std::string_view text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd.valid() && ::write(fd.get(), text.data(), text.size()) ==
                           static_cast<ssize_t>(text.size());
}

}  // namespace txfs::cli

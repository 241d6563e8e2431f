#include "cli/run/terminal_filter.h"

#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <type_traits>

#include "journal/support/unique_fd.h"

namespace txfs::cli {

Result<std::string> TerminalFilter() {
  struct Release {
    void operator()(void* filter) const { ::seccomp_release(filter); }
  };
  const std::unique_ptr<std::remove_pointer_t<scmp_filter_ctx>, Release> filter(
      ::seccomp_init(SCMP_ACT_ALLOW));
  if (!filter) return Fail(ENOMEM, "seccomp filter");
  // A program of another architecture that the kernel runs as well is killed
  // unless the filter knows it.
  const uint32_t native = ::seccomp_arch_native();
  for (const uint32_t arch : {SCMP_ARCH_X86, SCMP_ARCH_X32}) {
    if (native == SCMP_ARCH_X86_64) ::seccomp_arch_add(filter.get(), arch);
  }
  if (native == SCMP_ARCH_AARCH64) {
    ::seccomp_arch_add(filter.get(), SCMP_ARCH_ARM);
  }
  const uint32_t refuse = SCMP_ACT_ERRNO(EPERM);
  // The kernel reads the lower half of the number alone.
  constexpr uint64_t kLow = 0xffffffff;
  int failed = 0;
  for (const uint64_t request : {TIOCSTI, TIOCLINUX}) {
    const scmp_arg_cmp is_request{.arg = 1,
                                  .op = SCMP_CMP_MASKED_EQ,
                                  .datum_a = kLow,
                                  .datum_b = request};
    failed |= ::seccomp_rule_add_array(filter.get(), refuse, SCMP_SYS(ioctl), 1,
                                       &is_request);
  }
  for (const int call :
       {SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(keyctl)}) {
    failed |= ::seccomp_rule_add(filter.get(), refuse, call, 0);
  }
  const UniqueFd fd(::memfd_create("txfs-seccomp", MFD_CLOEXEC));
  if (failed != 0 || !fd.valid() ||
      ::seccomp_export_bpf(filter.get(), fd.get()) != 0) {
    return Fail(EIO, "seccomp filter");
  }
  std::string program(static_cast<size_t>(::lseek(fd.get(), 0, SEEK_END)), 0);
  if (::pread(fd.get(), program.data(), program.size(), 0) !=
      static_cast<ssize_t>(program.size())) {
    return Fail(EIO, "seccomp filter");
  }
  return program;
}

}  // namespace txfs::cli

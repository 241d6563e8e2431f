#include "cli/run/sandbox_filter.h"

#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <type_traits>

#include "journal/support/unique_fd.h"

namespace txfs::cli {
namespace {

/// A comparison with the lower half of argument `at`, which is all that the
/// kernel reads of a number of 32 bits.
scmp_arg_cmp LowIs(unsigned at, uint64_t value) {
  constexpr uint64_t kLow = 0xffffffff;
  return {
      .arg = at, .op = SCMP_CMP_MASKED_EQ, .datum_a = kLow, .datum_b = value};
}

/// Returns nonzero if a rule cannot be added.
int RefuseFamilies(scmp_filter_ctx filter) {
  const uint32_t refuse = SCMP_ACT_ERRNO(EAFNOSUPPORT);
  int failed = 0;
  for (const int call : {SCMP_SYS(socket), SCMP_SYS(socketpair)}) {
    for (uint64_t family = 0; family < AF_NETLINK; ++family) {
      if (family == AF_UNIX || family == AF_INET || family == AF_INET6) {
        continue;
      }
      // For socketcall(2) of 32-bit programs, whose arguments a filter cannot
      // read, this refuses every family.
      const scmp_arg_cmp is_family = LowIs(0, family);
      failed |= ::seccomp_rule_add_array(filter, refuse, call, 1, &is_family);
    }
    const scmp_arg_cmp is_later{
        .arg = 0, .op = SCMP_CMP_GT, .datum_a = AF_NETLINK, .datum_b = 0};
    failed |= ::seccomp_rule_add_array(filter, refuse, call, 1, &is_later);
  }
  return failed | ::seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS),
                                     SCMP_SYS(io_uring_setup), 0);
}

}  // namespace

Result<std::string> SandboxFilter(bool is_cut) {
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
  int failed = 0;
  for (const uint64_t request : {TIOCSTI, TIOCLINUX}) {
    const scmp_arg_cmp is_request = LowIs(1, request);
    failed |= ::seccomp_rule_add_array(filter.get(), refuse, SCMP_SYS(ioctl), 1,
                                       &is_request);
  }
  for (const uint64_t request : {PTRACE_ATTACH, PTRACE_SEIZE}) {
    const std::array are_request = {
        scmp_arg_cmp{
            .arg = 0, .op = SCMP_CMP_EQ, .datum_a = request, .datum_b = 0},
        LowIs(1, 1)};
    failed |= ::seccomp_rule_add_array(filter.get(), refuse, SCMP_SYS(ptrace),
                                       are_request.size(), are_request.data());
  }
  if (is_cut) failed |= RefuseFamilies(filter.get());
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

#pragma once

#include <string>

#include "journal/support/result.h"

namespace txfs::cli {

/// A seccomp filter, as bwrap --seccomp reads it, that refuses (EPERM) what
/// leads out of a sandbox that shares the caller's terminal and session:
/// injecting input into the terminal (ioctl TIOCSTI and TIOCLINUX), the
/// kernel's keyrings, and tracing process 1, which then could not end.
///
/// `is_cut`: the sandbox has a network namespace of its own. Sockets of
/// families that it does not isolate, such as AF_VSOCK, are refused
/// (EAFNOSUPPORT): all but AF_UNIX, AF_INET, AF_INET6 and AF_NETLINK. So is
/// io_uring (ENOSYS), which makes sockets that the filter does not see.
Result<std::string> SandboxFilter(bool is_cut);

}  // namespace txfs::cli

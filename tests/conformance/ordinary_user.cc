#include "tests/conformance/ordinary_user.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iostream>

namespace txfs::testing {

std::string AsOrdinaryUser(const std::function<std::string()>& work) {
  std::cout.flush();
  const pid_t pid = ::fork();
  if (pid == 0) {
    std::string problem = "cannot be another user";
    if (::setgroups(0, nullptr) == 0 &&
        ::setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0 &&
        ::setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0) {
      umask(022);
      problem = work();
    }
    std::cerr << problem;
    ::_exit(problem.empty() ? 0 : 1);
  }
  int status = 0;
  if (pid < 0 || ::waitpid(pid, &status, 0) != pid) return "no child";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : "see above";
}

}  // namespace txfs::testing

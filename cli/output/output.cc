#include "cli/output/output.h"

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace txfs::cli {

Output::~Output() {
  if (file_ != stdout) ::pclose(file_);
}

bool Output::IsTerminal() { return ::isatty(STDOUT_FILENO) == 1; }

void Output::StartPager() {
  if (!IsTerminal()) return;
  const char* pager = std::getenv("PAGER");
  const std::string command = pager != nullptr ? pager : "less";
  if (command.empty() || command == "cat") return;
  ::setenv("LESS", "FRX", 0);
  // Leaving the pager early is no error.
  ::signal(SIGPIPE, SIG_IGN);
  FILE* pipe = ::popen((command + " || cat").c_str(), "we");
  if (pipe != nullptr) file_ = pipe;
}

void Output::Write(std::string_view bytes) {
  if (closed_ || error_ != 0) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) return;
  if (file_ != stdout && errno == EPIPE) {
    closed_ = true;
  } else {
    error_ = errno;
  }
}

Status Output::Finish() {
  if (std::fflush(file_) != 0 && error_ == 0 &&
      !(file_ != stdout && errno == EPIPE)) {
    error_ = errno;
  }
  if (file_ != stdout) ::pclose(std::exchange(file_, stdout));
  if (error_ != 0) return Fail(error_, "cannot write to the standard output");
  return {};
}

}  // namespace txfs::cli

#include "tests/conformance/watchdog.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <utility>

namespace txfs::testing {
namespace {

/// Of a file in /proc; what was written there by a process on one line. Empty
/// if the process has ended.
std::string ReadProc(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::ostringstream read;
  // A stream keeps to itself that the file cannot be read any more; an iterator
  // over its buffer throws.
  read << file.rdbuf();
  std::string text = std::move(read).str();
  std::ranges::replace(text, '\0', ' ');
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

void Tell(std::string& text, const std::filesystem::path& process) {
  text += process.filename().string() + ": " + ReadProc(process / "cmdline");
  text += "\n";
  std::error_code gone;
  std::filesystem::directory_iterator task(process / "task", gone);
  for (; !gone && task != std::filesystem::directory_iterator();
       task.increment(gone)) {
    const auto& thread = task->path();
    text += "  " + thread.filename().string() + " " +
            ReadProc(thread / "comm") + ": in " + ReadProc(thread / "wchan") +
            ", system call " + ReadProc(thread / "syscall") + "\n" +
            ReadProc(thread / "stack") + "\n";
  }
}

}  // namespace

std::string WhereThreadsAre(const std::string& mark) {
  std::string text;
  const std::string self = std::to_string(::getpid());
  Tell(text, "/proc/" + self);
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", gone)) {
    const std::string pid = entry.path().filename();
    if (pid == self || !std::ranges::all_of(pid, ::isdigit)) continue;
    if (ReadProc(entry.path() / "cmdline").find(mark) == std::string::npos) {
      continue;
    }
    Tell(text, entry.path());
  }
  return text;
}

Watchdog::Watchdog(std::string mark, std::chrono::seconds limit)
    : mark_(std::move(mark)),
      limit_(limit),
      deadline_(std::chrono::steady_clock::now() + limit),
      thread_([this] { Watch(); }) {
  ::pthread_setname_np(thread_.native_handle(), "watchdog");
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Watchdog::Begin(std::string what) {
  {
    const std::lock_guard lock(mutex_);
    what_ = std::move(what);
    deadline_ = std::chrono::steady_clock::now() + limit_;
  }
  changed_.notify_one();
}

void Watchdog::Watch() {
  std::unique_lock lock(mutex_);
  while (!done_) {
    const auto deadline = deadline_;
    changed_.wait_until(lock, deadline);
    if (done_ || std::chrono::steady_clock::now() < deadline_) continue;
    std::cerr << "hangs for " << limit_.count() << " s: " << what_ << "\n"
              << WhereThreadsAre(mark_) << std::flush;
    std::abort();
  }
}

}  // namespace txfs::testing

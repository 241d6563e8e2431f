// Compiled into txfs with fmt: to load one more library delays the start of
// each command by 0.2 ms, and only daemons log.
#undef SPDLOG_COMPILED_LIB
#define SPDLOG_HEADER_ONLY
#define FMT_HEADER_ONLY

#include "cli/daemon/log.h"

#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/rotating_file_sink.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "cli/protocol/runtime_dir.h"
#include "journal/support/file.h"

namespace txfs::cli {

void OpenNoLog() { spdlog::set_default_logger(spdlog::null_logger_mt("none")); }

void OpenLog(const std::string& path) {
  OpenNoLog();
  if (!MakeDirectories(path.substr(0, path.rfind('/')))) return;
  std::shared_ptr<spdlog::logger> logger;
  try {
    logger = spdlog::rotating_logger_mt("txfs", path, 1 << 20, 1);
    logger->flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex&) {
    return;
  }
  spdlog::set_default_logger(std::move(logger));
}

void CloseLog() { spdlog::shutdown(); }

void LogInfo(const std::string& line) { spdlog::info("{}", line); }

void LogWarning(const std::string& line) { spdlog::warn("{}", line); }

void LogError(const std::string& line) { spdlog::error("{}", line); }

}  // namespace txfs::cli

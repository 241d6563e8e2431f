#pragma once

#include <string>

namespace txfs::cli {

// The log of a daemon. A line is written as it is: see EscapeControls.

/// Opens the file `path`, of at most 1 MiB, and one old one beside it. Where it
/// cannot be written, nothing is logged.
void OpenLog(const std::string& path);
/// Nothing is logged.
void OpenNoLog();
void CloseLog();

void LogInfo(const std::string& line);
void LogWarning(const std::string& line);
void LogError(const std::string& line);

}  // namespace txfs::cli

#include "cli/output/errors.h"

#include <cstdio>
#include <string>

#include "cli/output/text.h"

namespace txfs::cli {

int ExitCode(ErrorKind kind) { return static_cast<int>(kind); }

namespace {

bool says_nothing = false;

void PrintLine(std::string_view line, FILE* file = stderr) {
  const std::string text = EscapeControls(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), file);
}

}  // namespace

void SayNothing() { says_nothing = true; }

void Say(std::string_view line) {
  if (!says_nothing) PrintLine(line);
}

void SayResult(std::string_view line) {
  if (says_nothing) return;
  PrintLine(line, stdout);
  std::fflush(stdout);
}

void SayFinished(std::string_view id) {
  if (!id.empty()) Say("finished the interrupted commit " + std::string(id));
}

std::string Explained(const Error& error) {
  return error.ToString() + (error.hint.empty() ? "" : "; " + error.hint);
}

int Report(const Error& error) {
  PrintLine("error: " + error.ToString());
  if (!error.hint.empty()) PrintLine("hint: " + error.hint);
  return ExitCode(error.kind);
}

}  // namespace txfs::cli

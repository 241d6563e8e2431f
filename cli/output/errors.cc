#include "cli/output/errors.h"

#include <cstdio>
#include <string>

#include "cli/output/text.h"

namespace txfs::cli {

int ExitCode(ErrorKind kind) { return static_cast<int>(kind); }

void Say(std::string_view line) {
  std::string text = EscapeControls(line) + "\n";
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void SayFinished(std::string_view id) {
  if (!id.empty()) Say("finished the interrupted commit " + std::string(id));
}

int Report(const Error& error) {
  Say("error: " + error.ToString());
  if (!error.hint.empty()) Say("hint: " + error.hint);
  return ExitCode(error.kind);
}

}  // namespace txfs::cli

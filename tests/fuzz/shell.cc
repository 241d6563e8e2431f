// Shell text is taken apart and judged: it always ends, within its bounds, and
// the verdict can be printed. The same text as a program of each language.

#include <string>

#include "cli/output/json.h"
#include "cli/shell/code.h"
#include "cli/shell/judge.h"
#include "cli/shell/reader.h"
#include "cli/shell/verdict_format.h"
#include "policy/sources.h"
#include "tests/fuzz/fuzz.h"

namespace txfs::cli {
namespace {

using fuzz::Demand;

/// What one command may add after the bound is reached: its redirections.
constexpr size_t kMaxOver = 1100;

const policy::Policy& Rules() {
  static const auto kRules =
      policy::LoadSources({.builtin = true, .files = {}}, -1);
  Demand(kRules.has_value(), "the built-in rules load");
  return **kRules;
}

void CheckText(std::string_view text) {
  const policy::Surroundings& around = policy::ExampleSurroundings();
  const ShellStart start{.surroundings = around, .directory = around.workspace};
  const CommandVerdict verdict = Judge(Rules(), ReadShellText(text, start),
                                       around, policy::Confinement::kNone);
  Demand(verdict.parts.size() == verdict.reading.parts.size(),
         "each part has a verdict");
  Demand(verdict.parts.size() <= kMaxShellParts + kMaxOver,
         "there are not too many parts");
  const Document document = VerdictDocument(verdict);
  Demand(Json::accept(Dump(document)), "the verdict is JSON");
  Demand(!VerdictText(verdict).empty(), "the verdict is text");
}

}  // namespace
}  // namespace txfs::cli

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using txfs::cli::Language;
  const std::string_view text = txfs::fuzz::TextOf(data, size);
  for (const Language language :
       {Language::kPython, Language::kPerl, Language::kRuby, Language::kNode,
        Language::kPhp, Language::kAwk, Language::kLua}) {
    for (const auto& effect : txfs::cli::FindEffects(language, text)) {
      using Kind = txfs::cli::CodeEffect::Kind;
      const bool is_of_all = effect.kind == Kind::kRunDownload ||
                             effect.kind == Kind::kRunDecoded ||
                             effect.kind == Kind::kShellForPeer;
      txfs::fuzz::Demand(is_of_all || !effect.words.empty(),
                         "an effect has words");
    }
  }
  static_cast<void>(txfs::policy::SimpleWords(text));
  txfs::cli::CheckText(text);
  return 0;
}

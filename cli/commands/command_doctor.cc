#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/hook/hook_probe.h"
#include "cli/locate/way.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/text.h"
#include "cli/run/probes.h"

namespace txfs::cli {
namespace {

const char* StateOf(const Probe& probe) {
  switch (probe.state) {
    case Probe::State::kOk:
      return "ok";
    case Probe::State::kNote:
      return "note";
    case Probe::State::kFail:
      return "fail";
  }
  return "";
}

size_t CountFailed(const std::vector<Probe>& probes) {
  return static_cast<size_t>(
      std::ranges::count(probes, Probe::State::kFail, &Probe::state));
}

Document DoctorDocument(const std::vector<Probe>& probes) {
  Document document;
  document["works"] = CountFailed(probes) == 0;
  Document& list = document["probes"] = Document::array();
  for (const Probe& probe : probes) {
    Document& item = list.emplace_back();
    item["name"] = probe.name;
    item["state"] = StateOf(probe);
    item["meaning"] = ToUtf8(probe.meaning);
    item["remedy"] = nullptr;
    if (!probe.remedy.empty()) item["remedy"] = ToUtf8(probe.remedy);
  }
  return document;
}

std::string DoctorText(const std::vector<Probe>& probes) {
  std::string text;
  for (const Probe& probe : probes) {
    std::string state = StateOf(probe);
    state.resize(6, ' ');
    text += state + probe.name + ": " + EscapeControls(probe.meaning) + "\n";
    if (!probe.remedy.empty()) {
      text += "      remedy: " + EscapeControls(probe.remedy) + "\n";
    }
  }
  const size_t failed = CountFailed(probes);
  return text + (failed == 0 ? "txfs run works here\n"
                             : "txfs run does not work here: " +
                                   Count(failed, "probe") + " failed\n");
}

}  // namespace

Result<int> RunDoctor(const Context& context,
                      const std::optional<std::string>& workspace, bool json) {
  std::string directory = context.directory;
  if (workspace) directory = TRY(ResolveDirectory(directory, *workspace));
  std::vector<Probe> probes = ProbeAll(directory, context.store);
  std::ranges::move(ProbeHooks(directory), std::back_inserter(probes));
  Output output;
  output.Write(json ? Dump(DoctorDocument(probes), 2) + "\n"
                    : DoctorText(probes));
  TRY(output.Finish());
  return CountFailed(probes) == 0 ? 0 : 1;
}

}  // namespace txfs::cli

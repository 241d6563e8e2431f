#include <ranges>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/locate/way.h"
#include "cli/output/json.h"
#include "cli/output/log_format.h"
#include "cli/output/output.h"
#include "cli/output/paths.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

constexpr uint64_t kShown = 10;

std::string WhyText(const std::string& path, const LogReply& denials) {
  const std::string name = path.empty() ? "." : EscapeControls(path);
  if (denials.entries.empty()) {
    // Something may have been that is only counted.
    const bool is_known = denials.dropped == 0;
    return (is_known ? "nothing was refused at " : "no entry is kept for ") +
           name + " or below\n";
  }
  std::string text;
  for (const LogEntry& entry : denials.entries | std::views::reverse) {
    text += DenialText(entry);
  }
  return text;
}

Document WhyDocument(const std::string& path, const LogReply& denials) {
  Document document;
  document["transaction"] = denials.transaction;
  PutPath(document, "path", path);
  document["denials"] = Document::array();
  for (const LogEntry& entry : denials.entries | std::views::reverse) {
    document["denials"].push_back(LogDocument(entry));
  }
  document["only_counted"] = denials.dropped;
  return document;
}

}  // namespace

Result<int> RunWhy(const Context& context, const std::string& path, bool json) {
  TRY(CheckWay(context.directory, path));
  // Whoever was refused may stand anywhere.
  Context at = context;
  at.directory = ResolveParent(context.directory, path);
  const Place place = TRY(Locate(at));
  const std::vector<std::string> paths =
      TRY(RelativePaths(context, place, {path}));
  Client client = TRY(Connect(place));
  const LogReply denials = TRY(client.Log({.first = 1,
                                           .count = 0,
                                           .last = kShown,
                                           .op = "",
                                           .path = paths[0],
                                           .denied = true}));
  Output output;
  output.Write(json ? Dump(WhyDocument(paths[0], denials), 2) + "\n"
                    : WhyText(paths[0], denials));
  TRY(output.Finish());
  if (!json) SayDropped(denials.dropped);
  return 0;
}

}  // namespace txfs::cli

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>

#include "cli/commands/commands.h"
#include "cli/diff/diff_format.h"
#include "cli/diff/diff_print.h"
#include "cli/locate/locate.h"
#include "cli/output/errors.h"
#include "cli/output/held_text.h"
#include "cli/output/output.h"
#include "cli/rules/policy_rules.h"

namespace txfs::cli {
namespace {

/// Those of `changes` that a commit of `below` would hold.
Status KeepHeld(Client& client, const std::vector<std::string>& below,
                std::vector<NetChange>& changes) {
  const HeldReport held =
      TRY(client.Plan({.paths = below, .all_held = true})).held;
  std::set<std::string> paths;
  for (const HeldChange& each : held.changes) {
    paths.insert(each.path);
    if (!each.old_path.empty()) paths.insert(each.old_path);
  }
  std::erase_if(changes, [&](const NetChange& change) {
    return !paths.contains(change.path) && !paths.contains(change.old_path);
  });
  SayHeld(held);
  return {};
}

}  // namespace

Result<int> RunDiff(const Context& context, const DiffArguments& arguments) {
  if (arguments.since && arguments.since->empty()) {
    return Fail(ErrorKind::kUsage, 0, "--since \"\" names no savepoint",
                "`txfs status` lists the savepoints");
  }
  if (arguments.since && arguments.call) {
    return Fail(ErrorKind::kUsage, 0, "--since and --call exclude each other",
                "omit one of them");
  }
  if (arguments.held && (arguments.since || arguments.call)) {
    return Fail(ErrorKind::kUsage, 0,
                "--held does not go with --since or --call: a commit has all "
                "changes",
                "leave these out");
  }
  const Place place = TRY(Locate(context));
  const auto below = TRY(RelativePaths(context, place, arguments.paths));
  Rules rules;
  if (arguments.held && place.daemon != DaemonState::kRunning) {
    rules = TRY(RulesOfNextMount(place.real));
  }
  Client client =
      TRY(ConnectFlushed(place, WhatWaits::kGoOnWaiting, std::move(rules)));
  std::optional<std::string> since = arguments.since;
  std::string until;
  if (arguments.call) {
    const CallBounds call = TRY(client.FindCallBounds(*arguments.call));
    since = call.since;
    until = call.until;
  }
  size_t gone = 0;
  const ContentReader read =
      [&](std::span<const WantedSide> sides) -> Result<Contents> {
    Contents contents =
        TRY(client.ReadContents(sides, kPatchContentMax, since, until));
    for (Result<std::string>& content : contents) {
      if (content || content.error().code != ESTALE) continue;
      ++gone;
      content = std::string();
    }
    return contents;
  };
  std::vector<NetChange> net = TRY(client.Changes(true, below, since, until));
  if (arguments.held) TRY(KeepHeld(client, below, net));
  const bool is_patch = !arguments.json && !arguments.style.name_status;
  auto closed = TRY(TakeClosed(net, [&](std::span<const WantedSide> sides) {
    return client.ProbeContents(sides, since, until);
  }));
  SayClosed(closed);
  const ShownChanges shown =
      TRY(ShowChanges(std::move(net), std::move(closed), {}, read));
  if (shown.skipped) {
    Say("note: too many files were added and deleted to look for renames among "
        "them");
  }
  const DiffStyle& style = arguments.style;
  if (is_patch) SayWhatIsMissing(shown.changes);
  Output output;
  if (arguments.json) {
    WriteJsonArray(shown.changes,
                   [&](std::string_view text) { output.Write(text); });
  } else {
    if (!arguments.no_pager) output.StartPager();
    TRY(PrintChanges(style, shown.changes, read, output));
  }
  TRY(output.Finish());
  if (gone != 0) {
    Say("warning: " + std::to_string(gone) +
        " files disappeared during the comparison; run `txfs diff` again");
  }
  return 0;
}

}  // namespace txfs::cli

#include "cli/output/held_text.h"

#include <algorithm>

#include "cli/output/errors.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

uint64_t OpenCount(const HeldReport& held) {
  const auto open =
      std::ranges::count(held.changes, false, &HeldChange::accepted);
  uint64_t count = static_cast<uint64_t>(open);
  for (const HeldRest& rest : held.more) count += rest.open;
  return count;
}

uint64_t AcceptedCount(const HeldReport& held) {
  const auto accepted =
      std::ranges::count(held.changes, true, &HeldChange::accepted);
  uint64_t count = static_cast<uint64_t>(accepted);
  for (const HeldRest& rest : held.more) count += rest.accepted;
  return count;
}

std::string TextOfHeld(const HeldChange& held) {
  std::string text = "held: " + EscapeControls(held.path);
  if (held.change == "removed") text += " (removed)";
  return text + ": " + EscapeControls(held.reason) + " (" +
         EscapeControls(held.rule) + ")";
}

void SayLines(const HeldChange& held) {
  for (const std::string& line : held.lines) {
    Say("    " + EscapeControls(line));
  }
  if (held.more_lines != 0) {
    Say("    and " + Count(held.more_lines, "more line"));
  }
}

}  // namespace

std::string HeldCount(const HeldReport& held) {
  const uint64_t open = OpenCount(held);
  return Count(open, "change") + (open == 1 ? " is" : " are") +
         " held for review";
}

void SayHeld(const HeldReport& held, HeldLines lines) {
  for (const HeldChange& each : held.changes) {
    if (each.accepted) continue;
    Say(TextOfHeld(each));
    if (lines == HeldLines::kShown) SayLines(each);
  }
  for (const HeldRest& rest : held.more) {
    if (rest.open == 0) continue;
    Say("held: " + Count(rest.open, "more change") + " (" +
        EscapeControls(rest.rule) + ")");
  }
}

void SayHeldOutcome(const HeldReport& held) {
  if (held.left) {
    SayHeld(held, HeldLines::kLeftOut);
    Say("note: " + HeldCount(held) +
        " and in the transaction; `txfs diff --held` shows what that is");
  }
  if (const uint64_t accepted = AcceptedCount(held); accepted != 0) {
    Say("note: accepted " + Count(accepted, "change") + " that rules hold");
  }
}

Document HeldDocuments(const HeldReport& held) {
  Document documents = Document::array();
  for (const HeldChange& each : held.changes) {
    Document item;
    PutPath(item, "path", each.path);
    item["old_path"] = nullptr;
    if (!each.old_path.empty()) PutPath(item, "old_path", each.old_path);
    item["change"] = ToUtf8(each.change);
    item["rule"] = ToUtf8(each.rule);
    item["reason"] = ToUtf8(each.reason);
    item["suggest"] = ToUtf8(each.suggest);
    item["lines"] = Document::array();
    for (const std::string& line : each.lines) {
      item["lines"].push_back(ToUtf8(line));
    }
    item["more_lines"] = each.more_lines;
    item["accepted"] = each.accepted;
    documents.push_back(std::move(item));
  }
  return documents;
}

Document HeldRestDocuments(const HeldReport& held) {
  Document documents = Document::array();
  for (const HeldRest& rest : held.more) {
    Document item;
    item["rule"] = ToUtf8(rest.rule);
    item["open"] = rest.open;
    item["accepted"] = rest.accepted;
    documents.push_back(std::move(item));
  }
  return documents;
}

}  // namespace txfs::cli

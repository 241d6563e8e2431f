#include "cli/protocol/pending.h"

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

/// More of them are counted.
constexpr size_t kNamesShown = 10;

std::string_view LayerName(policy::Layer layer) {
  return layer == policy::Layer::kBase ? "base" : "new";
}

Json NamesOf(const Question& question) {
  Json names = Json::array();
  for (const TouchedName& name : question.names) {
    names.push_back({{"effect", policy::NameOf(name.effect)},
                     {"path", EncodeBytes(name.path)},
                     {"layer", LayerName(name.layer)}});
  }
  return names;
}

std::string WhoText(const PendingQuestion& question) {
  const auto number = [](uint64_t pid) {
    return pid == 0 ? std::string("?") : std::to_string(pid);
  };
  return (question.exe.empty() ? "?" : EscapeControls(question.exe)) +
         ", process " + Join(question.pids, number) + ", uid " +
         std::to_string(question.uid);
}

std::string NamesText(const PendingQuestion& question) {
  std::string text;
  for (size_t i = 0; i < question.names.size(); ++i) {
    if (i == kNamesShown) {
      return text + "    and " +
             Count(question.names.size() - kNamesShown, "name") + " more\n";
    }
    const auto& name = question.names[i];
    text += "    " + EscapeControls(name.effect) + "  " + PathText(name.path) +
            "  (" + EscapeControls(name.layer) + ")\n";
  }
  return text;
}

}  // namespace

Json ToJson(const Question& question) {
  return {{"rule", question.rule->id},
          {"reason", EncodeBytes(question.rule->reason)},
          {"suggest", EncodeBytes(question.rule->suggest)},
          {"op", OpName(question.op)},
          {"path", EncodeBytes(question.path)},
          {"new_path", EncodeBytes(question.new_path)},
          {"exe", EncodeBytes(question.exe)},
          {"names", NamesOf(question)}};
}

Json ToJson(const ApprovalQueue::Item& item) {
  Json json = ToJson(item.question);
  json["id"] = item.id;
  json["uid"] = item.uid;
  json["asked"] = {item.asked.sec, item.asked.nsec};
  json["left_ms"] = item.left.count();
  json["pids"] = Json::array();
  for (const ProcessIdentity& process : item.processes) {
    json["pids"].push_back(static_cast<uint64_t>(process.pid));
  }
  return json;
}

PendingQuestion PendingFromJson(const Json& json) {
  PendingQuestion question{.id = GetUint(json, "id"),
                           .rule = GetBytes(json, "rule"),
                           .reason = GetBytes(json, "reason"),
                           .suggest = GetBytes(json, "suggest"),
                           .op = GetBytes(json, "op"),
                           .path = GetBytes(json, "path"),
                           .new_path = GetBytes(json, "new_path"),
                           .exe = GetBytes(json, "exe"),
                           .uid = static_cast<uint32_t>(GetUint(json, "uid")),
                           .names = {},
                           .pids = {},
                           .asked = {},
                           .left_ms = GetInt(json, "left_ms")};
  for (const Json& name : GetMember(json, "names")) {
    question.names.push_back({.effect = GetBytes(name, "effect"),
                              .path = GetBytes(name, "path"),
                              .layer = GetBytes(name, "layer")});
  }
  for (const Json& pid : GetMember(json, "pids")) {
    question.pids.push_back(pid.is_number_unsigned() ? pid.get<uint64_t>() : 0);
  }
  const Json& asked = GetMember(json, "asked");
  if (asked.is_array() && asked.size() == 2 && asked[0].is_number_integer() &&
      asked[1].is_number_unsigned()) {
    question.asked = {asked[0].get<int64_t>(), asked[1].get<uint32_t>()};
  }
  return question;
}

std::string PendingText(const PendingQuestion& question) {
  std::string text = std::to_string(question.id) + "  " +
                     EscapeControls(question.op) + "  " +
                     PathText(question.path);
  if (!question.new_path.empty()) {
    text += " -> " + EscapeControls(question.new_path);
  }
  text += "  by " + EscapeControls(question.rule) + ", " +
          std::to_string(question.left_ms / 1000) + " s left\n";
  text += "    reason: " + EscapeControls(question.reason) + "\n";
  return text + "    program: " + WhoText(question) + "\n" +
         NamesText(question);
}

Document PendingDocument(const PendingQuestion& question) {
  Document document;
  document["id"] = question.id;
  document["asked"] = UtcTime(question.asked);
  document["left_ms"] = question.left_ms;
  document["rule"] = ToUtf8(question.rule);
  document["reason"] = ToUtf8(question.reason);
  document["suggest"] = ToUtf8(question.suggest);
  document["op"] = ToUtf8(question.op);
  PutPath(document, "path", question.path);
  document["new_path"] = nullptr;
  if (!question.new_path.empty()) {
    PutPath(document, "new_path", question.new_path);
  }
  document["names"] = Document::array();
  for (const auto& name : question.names) {
    Document one;
    one["effect"] = ToUtf8(name.effect);
    PutPath(one, "path", name.path);
    one["layer"] = ToUtf8(name.layer);
    document["names"].push_back(std::move(one));
  }
  PutPath(document, "exe", question.exe);
  document["uid"] = question.uid;
  document["pids"] = question.pids;
  return document;
}

}  // namespace txfs::cli

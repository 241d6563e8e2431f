#include "policy/load_settings.h"

#include <cmath>

namespace txfs::policy {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kMaxTimeout{std::chrono::hours(1)};

/// A time in seconds; `otherwise` where there is none.
Result<milliseconds> ReadSeconds(const Section& section, std::string_view key,
                                 milliseconds otherwise) {
  const Node* node = section.Get(key);
  if (node == nullptr) return otherwise;
  const auto whole = node->AsInteger();
  const double seconds =
      whole ? static_cast<double>(*whole) : node->AsReal().value_or(-1);
  const double time = seconds * 1000;
  // Not the other way round: it may be no number at all.
  if (time >= 1 && time <= static_cast<double>(kMaxTimeout.count())) {
    return milliseconds(std::llround(time));
  }
  return section.Wrong(key, "is not a valid time",
                       "a number of seconds, from 0.001 to 3600");
}

/// A table that may be missing.
Result<const Node*> FindTable(const Section& top, const char* key) {
  const Node* table = top.Get(key);
  if (table == nullptr || table->is_table()) return table;
  return top.Wrong(key, "is not a table", "[" + std::string(key) + "]");
}

Result<HookSettings> ReadHook(const Section& section) {
  HookSettings hook;
  TRY(section.CheckKeys({"command", "timeout", "on_error"}));
  hook.command = TRY(section.Texts("command"));
  // It must not depend on where who mounts happens to be, or on his PATH.
  if (hook.command.empty() || !hook.command[0].starts_with('/')) {
    return section.Wrong("command", "does not name a program",
                         "a list of an absolute path and arguments");
  }
  hook.timeout = TRY(ReadSeconds(section, "timeout", hook.timeout));
  const std::string on_error = TRY(section.Text("on_error", "deny"));
  if (on_error != "deny") {
    return section.Wrong("on_error", "is " + Quoted(on_error), "deny");
  }
  hook.place = section.place().ToString();
  return hook;
}

}  // namespace

Result<Settings> ReadSettings(const std::string& file, const Section& top) {
  Settings settings;
  if (const Node* ask = TRY(FindTable(top, "ask"))) {
    const Section section(file, "[ask]", *ask);
    TRY(section.CheckKeys({"timeout"}));
    if (section.Has("timeout")) {
      settings.ask_timeout = TRY(ReadSeconds(section, "timeout", kAskTimeout));
    }
  }
  if (const Node* hook = TRY(FindTable(top, "hook"))) {
    settings.hook = TRY(ReadHook(Section(file, "[hook]", *hook)));
  }
  return settings;
}

}  // namespace txfs::policy

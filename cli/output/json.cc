#include "cli/output/json.h"

#include <set>
#include <string>
#include <vector>

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

const Json* Find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Whether no more than kMaxNesting brackets are open at once. Of what is no
/// JSON it says anything.
bool IsShallow(std::string_view text) {
  size_t depth = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if ((c == '[' || c == '{') && ++depth > kMaxNesting) return false;
    if ((c == ']' || c == '}') && depth > 0) --depth;
  }
  return true;
}

}  // namespace

Json ParseBounded(std::string_view text) {
  if (!IsShallow(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

Json ParseStrictly(std::string_view text) {
  if (!IsShallow(text)) return Json(Json::value_t::discarded);
  std::vector<std::set<std::string>> open;
  bool is_strict = true;
  const auto note = [&](int, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key &&
        !open.back().insert(parsed.get<std::string>()).second) {
      is_strict = false;
    }
    return true;
  };
  Json json = Json::parse(text, note, false);
  return is_strict ? json : Json(Json::value_t::discarded);
}

uint64_t GetUint(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_number_unsigned()
             ? value->get<uint64_t>()
             : 0;
}

int64_t GetInt(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_number_integer() ? value->get<int64_t>()
                                                        : 0;
}

bool GetBool(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr && value->is_boolean() && value->get<bool>();
}

std::string GetBytes(const Json& object, const char* key) {
  const Json* value = Find(object, key);
  return value != nullptr ? DecodeBytes(*value) : std::string();
}

const Json& GetMember(const Json& object, const char* key) {
  static const Json kNothing = Json::array();
  const Json* value = Find(object, key);
  return value != nullptr && value->is_structured() ? *value : kNothing;
}

Json EncodeBytes(std::string_view bytes) {
  if (IsUtf8(bytes)) return std::string(bytes);
  return {{"base64", EncodeBase64(bytes)}};
}

std::string DecodeBytes(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  const Json* text = Find(json, "base64");
  return text != nullptr && text->is_string()
             ? DecodeBase64(text->get_ref<const std::string&>())
             : std::string();
}

void PutPath(Document& object, const std::string& key, std::string_view bytes) {
  object[key] = ToUtf8(bytes);
  if (!IsUtf8(bytes)) object[key + "_bytes"] = EncodeBase64(bytes);
}

}  // namespace txfs::cli

#include "policy/section.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "journal/support/unseen.h"

namespace txfs::policy {
namespace {

constexpr size_t kMaxSentence = 1000;
/// Of one line: the parser calls itself for each part of a dotted key.
constexpr std::ptrdiff_t kMaxDots = 1000;

/// Its number; 0: there is none.
uint32_t LineOfManyDots(std::string_view text) {
  for (uint32_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (std::ranges::count(text.substr(0, end), '.') > kMaxDots) return number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

}  // namespace

std::string Quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

Result<toml::table> ParseToml(std::string_view text, const std::string& file) {
  if (const uint32_t line = LineOfManyDots(text); line != 0) {
    return Fail(EINVAL, Place{file, line}.ToString() +
                            ": too many dots; expected a line with 1000 at "
                            "most");
  }
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& error) {
    const auto line = static_cast<uint32_t>(error.source().begin.line);
    return Fail(EINVAL, Place{file, line}.ToString() + ": not valid TOML: " +
                            std::string(error.description()));
  }
}

std::unexpected<Error> Section::Wrong(const toml::source_region& where,
                                      std::string_view what,
                                      std::string_view expected) const {
  const auto line = static_cast<uint32_t>(where.begin.line);
  return Fail(EINVAL, Place{file_, line}.ToString() + ": " + std::string(what) +
                          "; expected " + std::string(expected));
}

std::unexpected<Error> Section::Wrong(std::string_view key,
                                      std::string_view what,
                                      std::string_view expected) const {
  const toml::node* node = table_.get(key);
  return Wrong(node == nullptr ? table_.source() : node->source(),
               std::string(key) + " of " + name_ + " " + std::string(what),
               expected);
}

Status Section::CheckKeys(std::initializer_list<std::string_view> known) const {
  for (const auto& [key, value] : table_) {
    if (std::ranges::find(known, key.str()) != known.end()) continue;
    return Wrong(key.source(),
                 "unknown key " + Quoted(key.str()) + " in " + name_,
                 "one of " + Listed(known));
  }
  return {};
}

Status Section::CheckPlain(std::string_view key, std::string_view text,
                           size_t longest) const {
  if (text.size() > longest) {
    return Wrong(key, "has " + std::to_string(text.size()) + " bytes",
                 std::to_string(longest) + " at most");
  }
  for (size_t i = 0; i < text.size(); ++i) {
    if (!BeginsUnseen(text.substr(i))) continue;
    return Wrong(key, "has an invisible character",
                 "one line, without control characters");
  }
  return {};
}

Result<std::string> Section::Text(std::string_view key,
                                  std::string_view otherwise) const {
  if (!Has(key)) return std::string(otherwise);
  const auto text = table_.get(key)->value_exact<std::string>();
  if (!text) return Wrong(key, "is not text", "text in quotes");
  return *text;
}

Result<std::string> Section::RequiredText(std::string_view key) const {
  std::string text = TRY(Text(key, ""));
  const bool blank = text.find_first_not_of(" \t\n") == std::string::npos;
  if (blank) return Wrong(key, "is missing or empty", "text");
  TRY(CheckPlain(key, text, kMaxSentence));
  return text;
}

Result<bool> Section::Flag(std::string_view key, bool otherwise) const {
  if (!Has(key)) return otherwise;
  const auto flag = table_.get(key)->value_exact<bool>();
  if (!flag) return Wrong(key, "is not a boolean", "true or false");
  return *flag;
}

Result<std::vector<std::string>> Section::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  if (!Has(key)) return texts;
  constexpr std::string_view kExpected = "text, or a list of texts";
  if (const auto one = table_.get(key)->value_exact<std::string>()) {
    texts.push_back(*one);
    return texts;
  }
  const toml::array* list = table_.get_as<toml::array>(key);
  if (list == nullptr || list->empty()) {
    return Wrong(key, "is empty or has the wrong type", kExpected);
  }
  for (const toml::node& node : *list) {
    const auto text = node.value_exact<std::string>();
    if (!text) {
      return Wrong(
          node.source(),
          std::string(key) + " of " + name_ + " has a value that is not text",
          kExpected);
    }
    texts.push_back(*text);
  }
  return texts;
}

Result<std::vector<uint32_t>> Section::Uids(std::string_view key) const {
  std::vector<uint32_t> uids;
  const toml::node* node = Get(key);
  if (node == nullptr) return uids;
  const auto add = [&](const toml::node& one) {
    const auto uid = one.value_exact<int64_t>();
    const bool fits =
        uid && *uid >= 0 && *uid <= std::numeric_limits<uint32_t>::max();
    if (fits) uids.push_back(static_cast<uint32_t>(*uid));
    return fits;
  };
  bool good = true;
  if (const toml::array* list = node->as_array()) {
    good = !list->empty();
    for (const toml::node& one : *list) good = good && add(one);
  } else {
    good = add(*node);
  }
  if (good) return uids;
  return Wrong(key, "is not a user id", "a number, or a list of numbers");
}

}  // namespace txfs::policy

#include "policy/section.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>

#include "journal/support/unseen.h"

namespace txfs::policy {
namespace {

constexpr size_t kMaxSentence = 1000;

}  // namespace

std::string Quoted(std::string_view text) {
  return "\"" + std::string(text) + "\"";
}

std::unexpected<Error> Section::Wrong(uint32_t line, std::string_view what,
                                      std::string_view expected) const {
  return Fail(EINVAL, Place{file_, line}.ToString() + ": " + std::string(what) +
                          "; expected " + std::string(expected));
}

std::unexpected<Error> Section::Wrong(std::string_view key,
                                      std::string_view what,
                                      std::string_view expected) const {
  const Node* node = Get(key);
  return Wrong(node == nullptr ? table_.line : node->line,
               std::string(key) + " of " + name_ + " " + std::string(what),
               expected);
}

Status Section::CheckKeys(std::initializer_list<std::string_view> known) const {
  for (const Node& value : table_.items) {
    if (std::ranges::find(known, value.key) != known.end()) continue;
    return Wrong(value.key_line,
                 "unknown key " + Quoted(value.key) + " in " + name_,
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
  const Node* node = Get(key);
  if (node == nullptr) return std::string(otherwise);
  auto text = node->AsText();
  if (!text) return Wrong(key, "is not text", "text in quotes");
  return *std::move(text);
}

Result<std::string> Section::RequiredText(std::string_view key) const {
  std::string text = TRY(Text(key, ""));
  const bool blank = text.find_first_not_of(" \t\n") == std::string::npos;
  if (blank) return Wrong(key, "is missing or empty", "text");
  TRY(CheckPlain(key, text, kMaxSentence));
  return text;
}

Result<bool> Section::Flag(std::string_view key, bool otherwise) const {
  const Node* node = Get(key);
  if (node == nullptr) return otherwise;
  const auto flag = node->AsFlag();
  if (!flag) return Wrong(key, "is not a boolean", "true or false");
  return *flag;
}

Result<std::vector<std::string>> Section::Texts(std::string_view key) const {
  std::vector<std::string> texts;
  const Node* value = Get(key);
  if (value == nullptr) return texts;
  constexpr std::string_view kExpected = "text, or a list of texts";
  if (auto one = value->AsText()) {
    texts.push_back(*std::move(one));
    return texts;
  }
  if (!value->is_list() || value->items.empty()) {
    return Wrong(key, "is empty or has the wrong type", kExpected);
  }
  for (const Node& item : value->items) {
    auto text = item.AsText();
    if (!text) {
      return Wrong(
          item.line,
          std::string(key) + " of " + name_ + " has a value that is not text",
          kExpected);
    }
    texts.push_back(*std::move(text));
  }
  return texts;
}

Result<std::vector<uint32_t>> Section::Uids(std::string_view key) const {
  std::vector<uint32_t> uids;
  const Node* node = Get(key);
  if (node == nullptr) return uids;
  const auto add = [&](const Node& one) {
    const auto uid = one.AsInteger();
    const bool fits =
        uid && *uid >= 0 && *uid <= std::numeric_limits<uint32_t>::max();
    if (fits) uids.push_back(static_cast<uint32_t>(*uid));
    return fits;
  };
  bool good = true;
  if (node->is_list()) {
    good = !node->items.empty();
    for (const Node& one : node->items) good = good && add(one);
  } else {
    good = add(*node);
  }
  if (good) return uids;
  return Wrong(key, "is not a user id", "a number, or a list of numbers");
}

}  // namespace txfs::policy

#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "journal/support/result.h"
#include "policy/node.h"
#include "policy/rule.h"

namespace txfs::policy {

[[nodiscard]] std::string Quoted(std::string_view text);
/// The names, separated by commas.
template <class Names>
[[nodiscard]] std::string Listed(const Names& names) {
  std::string list;
  for (const std::string_view name : names) {
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  return list;
}

/// Longest pattern, in bytes.
inline constexpr size_t kMaxPattern = 4096;

/// A table of a policy file, with its name for messages. Errors are EINVAL with
/// "FILE:LINE: what is wrong; what is expected".
class Section {
 public:
  /// `file` and `table` outlive this.
  Section(const std::string& file, std::string name, const Node& table)
      : file_(file), name_(std::move(name)), table_(table) {}

  [[nodiscard]] std::unexpected<Error> Wrong(uint32_t line,
                                             std::string_view what,
                                             std::string_view expected) const;
  /// About the value of `key`, or its absence.
  [[nodiscard]] std::unexpected<Error> Wrong(std::string_view key,
                                             std::string_view what,
                                             std::string_view expected) const;

  /// An error if there is another key.
  [[nodiscard]] Status CheckKeys(
      std::initializer_list<std::string_view> known) const;

  [[nodiscard]] bool Has(std::string_view key) const {
    return Get(key) != nullptr;
  }
  [[nodiscard]] const Node* Get(std::string_view key) const {
    return table_.Find(key);
  }
  [[nodiscard]] Place place() const { return {file_, table_.line}; }

  /// An error if `text`, the value of `key`, is longer than `longest` bytes or
  /// has a character that is not visible or changes how the text around it is
  /// shown: users and agents see the text.
  [[nodiscard]] Status CheckPlain(std::string_view key, std::string_view text,
                                  size_t longest) const;

  /// The text of `key`; `otherwise` if there is none.
  [[nodiscard]] Result<std::string> Text(std::string_view key,
                                         std::string_view otherwise) const;
  /// An error if there is none, if it is only white space, or if CheckPlain
  /// rejects it.
  [[nodiscard]] Result<std::string> RequiredText(std::string_view key) const;
  /// `otherwise` if there is none.
  [[nodiscard]] Result<bool> Flag(std::string_view key, bool otherwise) const;
  /// The texts of `key`: one text, or a list that is not empty; none if the key
  /// is missing.
  [[nodiscard]] Result<std::vector<std::string>> Texts(
      std::string_view key) const;
  /// As Texts, for user ids.
  [[nodiscard]] Result<std::vector<uint32_t>> Uids(std::string_view key) const;

 private:
  const std::string& file_;
  std::string name_;
  const Node& table_;
};

}  // namespace txfs::policy

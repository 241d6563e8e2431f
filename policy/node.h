#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs::policy {

enum class NodeKind : uint8_t {
  kText,
  kInteger,
  kReal,
  kFlag,
  kList,
  kTable,
  kOther,  ///< a time or date
};

/// A value of a TOML file, and where it stands.
struct Node {
  NodeKind kind = NodeKind::kOther;
  uint32_t line = 0;
  std::string key = {};  ///< in the table around it
  uint32_t key_line = 0;
  std::string text = {};
  int64_t integer = 0;  ///< of a flag: 0 or 1
  double real = 0;
  std::vector<Node> items = {};  ///< of a list, or of a table by their keys

  [[nodiscard]] bool is_table() const { return kind == NodeKind::kTable; }
  [[nodiscard]] bool is_list() const { return kind == NodeKind::kList; }
  /// The member of a table; null: there is none.
  [[nodiscard]] const Node* Find(std::string_view name) const;
  [[nodiscard]] std::optional<std::string> AsText() const;
  [[nodiscard]] std::optional<int64_t> AsInteger() const;
  [[nodiscard]] std::optional<bool> AsFlag() const;
  [[nodiscard]] std::optional<double> AsReal() const;
};

/// The items of a list, or `node` itself, which is none.
[[nodiscard]] std::vector<const Node*> AloneOrListed(const Node& node);

/// Parses a file. EINVAL with "FILE:LINE: what is wrong": not TOML, a line with
/// more than 1000 dots, or more than 100 tables and lists in each other.
Result<Node> ParseToml(std::string_view text, const std::string& file);

/// `node` as bytes, for DecodeNode.
[[nodiscard]] Bytes EncodeNode(const Node& node);
/// None: `bytes` are not from EncodeNode.
std::optional<Node> DecodeNode(ByteSpan bytes);

}  // namespace txfs::policy

// Compiled into txfs: to load one more library delays the start of each command
// by 0.2 ms.
#define TOML_HEADER_ONLY 1
// Without NDEBUG, some of its assertions fail for a text that is no TOML, such
// as "[;x]", which it refuses otherwise.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>

#include "policy/node.h"
#include "policy/rule.h"

namespace txfs::policy {
namespace {

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

/// Of values in each other; of what anybody wrote, not 10.
constexpr size_t kMaxDepth = 100;

struct TooDeep {
  uint32_t line;
};

/// Throws TooDeep.
Node NodeOf(const toml::node& value, size_t depth = 0) {
  Node node{.line = value.source().begin.line};
  if (depth == kMaxDepth) throw TooDeep{node.line};
  if (const auto* text = value.as_string()) {
    node.kind = NodeKind::kText;
    node.text = text->get();
  } else if (const auto* integer = value.as_integer()) {
    node.kind = NodeKind::kInteger;
    node.integer = integer->get();
  } else if (const auto* real = value.as_floating_point()) {
    node.kind = NodeKind::kReal;
    node.real = real->get();
  } else if (const auto* flag = value.as_boolean()) {
    node.kind = NodeKind::kFlag;
    node.integer = flag->get() ? 1 : 0;
  } else if (const auto* list = value.as_array()) {
    node.kind = NodeKind::kList;
    node.items.reserve(list->size());
    for (const toml::node& item : *list) {
      node.items.push_back(NodeOf(item, depth + 1));
    }
  } else if (const auto* table = value.as_table()) {
    node.kind = NodeKind::kTable;
    node.items.reserve(table->size());
    for (const auto& [key, member] : *table) {
      Node& item = node.items.emplace_back(NodeOf(member, depth + 1));
      item.key = key.str();
      item.key_line = key.source().begin.line;
    }
  }
  return node;
}

}  // namespace

Result<Node> ParseToml(std::string_view text, const std::string& file) {
  if (const uint32_t line = LineOfManyDots(text); line != 0) {
    return Fail(EINVAL, Place{file, line}.ToString() +
                            ": too many dots; expected a line with 1000 at "
                            "most");
  }
  try {
    return NodeOf(toml::parse(text, file));
  } catch (const TooDeep& deep) {
    return Fail(EINVAL, Place{file, deep.line}.ToString() +
                            ": too deep; expected at most " +
                            std::to_string(kMaxDepth) +
                            " tables and lists in each other");
  } catch (const toml::parse_error& error) {
    const auto line = static_cast<uint32_t>(error.source().begin.line);
    return Fail(EINVAL, Place{file, line}.ToString() + ": not valid TOML: " +
                            std::string(error.description()));
  }
}

}  // namespace txfs::policy

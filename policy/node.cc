#include "policy/node.h"

#include <algorithm>
#include <bit>

namespace txfs::policy {
namespace {

void Encode(const Node& node, Encoder& out) {
  out.Put(static_cast<uint8_t>(node.kind));
  out.Put(node.line);
  out.PutString(node.key);
  out.Put(node.key_line);
  switch (node.kind) {
    case NodeKind::kText:
      out.PutString(node.text);
      break;
    case NodeKind::kInteger:
    case NodeKind::kFlag:
      out.Put(node.integer);
      break;
    case NodeKind::kReal:
      out.Put(std::bit_cast<uint64_t>(node.real));
      break;
    case NodeKind::kList:
    case NodeKind::kTable:
      out.Put(static_cast<uint32_t>(node.items.size()));
      for (const Node& item : node.items) Encode(item, out);
      break;
    case NodeKind::kOther:
      break;
  }
}

void Decode(Decoder& in, Node& node) {
  node.kind = static_cast<NodeKind>(in.Get<uint8_t>());
  node.line = in.Get<uint32_t>();
  node.key = in.GetString();
  node.key_line = in.Get<uint32_t>();
  switch (node.kind) {
    case NodeKind::kText:
      node.text = in.GetString();
      return;
    case NodeKind::kInteger:
    case NodeKind::kFlag:
      node.integer = in.Get<int64_t>();
      return;
    case NodeKind::kReal:
      node.real = std::bit_cast<double>(in.Get<uint64_t>());
      return;
    case NodeKind::kList:
    case NodeKind::kTable: {
      const auto count = in.Get<uint32_t>();
      // Each takes a byte at least.
      if (count > in.remaining()) return in.SetBad();
      node.items.resize(count);
      for (Node& item : node.items) Decode(in, item);
      return;
    }
    case NodeKind::kOther:
      return;
  }
  in.SetBad();
}

}  // namespace

const Node* Node::Find(std::string_view name) const {
  const auto found = std::ranges::find(items, name, &Node::key);
  return is_table() && found != items.end() ? &*found : nullptr;
}

std::optional<std::string> Node::AsText() const {
  if (kind != NodeKind::kText) return std::nullopt;
  return text;
}

std::optional<int64_t> Node::AsInteger() const {
  if (kind != NodeKind::kInteger) return std::nullopt;
  return integer;
}

std::optional<bool> Node::AsFlag() const {
  if (kind != NodeKind::kFlag) return std::nullopt;
  return integer != 0;
}

std::optional<double> Node::AsReal() const {
  if (kind != NodeKind::kReal) return std::nullopt;
  return real;
}

std::vector<const Node*> AloneOrListed(const Node& node) {
  if (!node.is_list()) return {&node};
  std::vector<const Node*> items;
  for (const Node& item : node.items) items.push_back(&item);
  return items;
}

Bytes EncodeNode(const Node& node) {
  Bytes bytes;
  Encoder out(bytes);
  Encode(node, out);
  return bytes;
}

std::optional<Node> DecodeNode(ByteSpan bytes) {
  Decoder in(bytes);
  Node node;
  Decode(in, node);
  if (!in.ok() || in.remaining() != 0) return std::nullopt;
  return node;
}

}  // namespace txfs::policy

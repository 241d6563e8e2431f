// freeze_rules OUTPUT FILE...: writes a source with the rules of the files,
// which are one policy together, parsed and without their examples.

#include <fcntl.h>

#include <cstdio>
#include <span>
#include <string>

#include "journal/support/file.h"
#include "policy/builtin.h"
#include "policy/node.h"

namespace txfs::policy {
namespace {

void DropExamples(Node& root) {
  for (Node& list : root.items) {
    for (Node& rule : list.items) {
      std::erase_if(rule.items, [](const Node& item) {
        return item.key == "match" || item.key == "not_match";
      });
    }
  }
}

std::string SourceOf(ByteSpan bytes) {
  std::string text =
      "#include \"policy/builtin.h\"\n\nnamespace txfs::policy {\n\n"
      "constexpr unsigned char kFrozen[] = {";
  constexpr size_t kInLine = 32;
  for (size_t i = 0; i < bytes.size(); ++i) {
    text += (i % kInLine == 0 ? "\n" : "") +
            std::to_string(std::to_integer<int>(bytes[i])) + ",";
  }
  return text +
         "};\n\nByteSpan FrozenRules() {\n"
         "  return std::as_bytes(std::span(kFrozen));\n}\n\n"
         "}  // namespace txfs::policy\n";
}

Status Freeze(const std::string& output, std::span<char* const> files) {
  constexpr size_t kMaxFile = size_t{1} << 20;
  std::string text;
  for (const char* file : files) {
    text += TRY(ReadWholeFile(AT_FDCWD, file, kMaxFile));
  }
  Node root = TRY(ParseToml(text, std::string(kBuiltinName)));
  DropExamples(root);
  const std::string source = SourceOf(EncodeNode(root));
  std::FILE* out = std::fopen(output.c_str(), "w");
  if (out == nullptr) return Fail(errno, output);
  const size_t written = std::fwrite(source.data(), 1, source.size(), out);
  if (std::fclose(out) != 0 || written != source.size()) {
    return Fail(errno, output);
  }
  return {};
}

}  // namespace
}  // namespace txfs::policy

int main(int argc, char** argv) {
  const std::span<char* const> arguments(argv, static_cast<size_t>(argc));
  if (arguments.size() < 3) return 2;
  const auto done = txfs::policy::Freeze(arguments[1], arguments.subspan(2));
  if (done) return 0;
  std::fprintf(stderr, "error: %s\n", done.error().ToString().c_str());
  return 1;
}

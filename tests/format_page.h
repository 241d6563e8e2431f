#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>
#include <string>

#include "journal/support/bytes.h"
#include "journal/support/file.h"

namespace txfs {

/// The bytes in docs/format.md in the fenced block after the line
/// "<!-- example NAME -->": hex pairs, each line ending in an optional comment
/// after "|".
inline Bytes ExampleBytes(const std::string& name) {
  const auto text = ReadWholeFile(AT_FDCWD, TXFS_SOURCE_DIR "/docs/format.md");
  EXPECT_TRUE(text.has_value());
  std::istringstream lines(text.value_or(""));
  std::string line;
  while (std::getline(lines, line) && line != "<!-- example " + name + " -->") {
  }
  std::getline(lines, line);
  Bytes bytes;
  while (std::getline(lines, line) && line != "```") {
    std::istringstream pairs(line.substr(0, line.find('|')));
    unsigned value = 0;
    while (pairs >> std::hex >> value) bytes.push_back(std::byte(value));
  }
  return bytes;
}

/// Hex pairs in lines, for a message with the correct example.
inline std::string Hex(ByteSpan bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    char pair[4];
    std::snprintf(pair, sizeof pair, "%02x%c", static_cast<unsigned>(bytes[i]),
                  i % 16 == 15 ? '\n' : ' ');
    text += pair;
  }
  return text;
}

}  // namespace txfs

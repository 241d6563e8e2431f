#pragma once

#include <string>

namespace txfs {

/// A text for merges.
inline const std::string kLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

/// `content` with the first `from`, which is in it, replaced by `to`.
inline std::string With(std::string content, const std::string& from,
                        const std::string& to) {
  return content.replace(content.find(from), from.size(), to);
}

}  // namespace txfs

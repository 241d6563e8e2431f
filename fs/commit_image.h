#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fs/base_directory.h"
#include "fs/commit_step.h"
#include "fs/conflicts.h"
#include "journal/base/bytes.h"
#include "journal/base/result.h"

namespace txfs {

/// What stands at one path of a commit when it is done.
struct ImageEntry {
  std::string path;
  bool exists = false;
  bool whole = false;  ///< a directory of which every entry is in the image
  uint64_t ino = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  Timestamp mtime;

  bool operator==(const ImageEntry&) const = default;
};

/// By path.
using CommitImage = std::vector<ImageEntry>;

/// What the base has at the paths of `steps`, which were carried out.
Result<CommitImage> TakeImage(const BaseDirectory& base,
                              const CommitSteps& steps);

/// What is no longer as in `image`.
Result<std::vector<Conflict>> CompareImage(const BaseDirectory& base,
                                           const CommitImage& image);

/// `undo` takes back the commit of which `image` was taken: directories that
/// others changed since then keep the times of that.
Status KeepLaterTimes(const BaseDirectory& base, const CommitImage& image,
                      CommitSteps& undo);

/// Encodes per docs/format.md, "Commit image".
[[nodiscard]] Bytes EncodeImage(const CommitImage& image);
Result<CommitImage> DecodeImage(ByteSpan in);

}  // namespace txfs

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fs/base/base_directory.h"
#include "fs/commit/conflict.h"
#include "fs/vault/commit_step.h"
#include "journal/support/bytes.h"
#include "journal/support/checksum.h"
#include "journal/support/result.h"

namespace txfs {

/// What an image knows of the content of a file.
enum class ImageContent : uint8_t {
  kNotOurs = 0,  ///< the commit did not bring it: size and time will do
  kHashed = 1,
  kTooLarge = 2,  ///< brought, but not read
};

/// What stands at one path of a commit when it is done.
struct ImageEntry {
  std::string path;
  bool exists = false;
  bool whole = false;  ///< a directory of which every entry is in the image
  uint64_t ino = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  Timestamp mtime, ctime;
  uint64_t xattrs = 0;  ///< checksum of the user.* attributes; 0: none
  ImageContent content = ImageContent::kNotOurs;
  ContentHash hash;  ///< kHashed

  bool operator==(const ImageEntry&) const = default;
};

/// By path.
using CommitImage = std::vector<ImageEntry>;

/// A larger file is not read for an image, bytes.
inline constexpr uint64_t kMaxImageContent = uint64_t{64} << 20;

/// What the base has at the paths of `steps`, which were carried out. Content
/// that they brought is read, unless they are those of an undo.
Result<CommitImage> TakeImage(const BaseDirectory& base,
                              const CommitSteps& steps, bool is_undo);

/// Whether it was a later commit, or undo, after which the object `ino` had
/// this ctime.
using IsOurDoing = std::function<Result<bool>(uint64_t ino, Timestamp ctime)>;

/// What is no longer as in `image`. Where only a ctime differs, attributes and
/// content are looked at; `is_ours` is asked about files that are too large
/// for that, which without it are taken for unchanged.
Result<std::vector<Conflict>> CompareImage(const BaseDirectory& base,
                                           const CommitImage& image,
                                           const IsOurDoing& is_ours = {});

/// `undo` takes back the commit of which `image` was taken: directories that
/// others changed since then keep the times of that.
Status KeepLaterTimes(const BaseDirectory& base, const CommitImage& image,
                      CommitSteps& undo);

/// Encodes per docs/format.md, "Commit image".
[[nodiscard]] Bytes EncodeImage(const CommitImage& image);
Result<CommitImage> DecodeImage(ByteSpan in);

}  // namespace txfs

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

/// What an image has about the content of a file.
enum class ImageContent : uint8_t {
  kNotOurs = 0,  ///< not from the commit: size and mtime suffice
  kHashed = 1,
  kTooLarge = 2,  ///< from the commit, but not read
};

/// The object at one path at the end of a commit.
struct ImageEntry {
  std::string path;
  bool exists = false;
  bool whole = false;  ///< a directory of which all entries are in the image
  uint64_t ino = 0;
  uint32_t mode = 0;  ///< with S_IF* bits
  uint32_t nlink = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t size = 0;
  Timestamp mtime, ctime;
  uint64_t xattrs = 0;  ///< checksum of the tracked attributes; 0: none
  ImageContent content = ImageContent::kNotOurs;
  ContentHash hash;  ///< kHashed

  bool operator==(const ImageEntry&) const = default;
};

/// Sorted by path.
using CommitImage = std::vector<ImageEntry>;

/// Size of the largest file that is read for an image, bytes.
inline constexpr uint64_t kMaxImageContent = uint64_t{64} << 20;

/// The objects of the base at the paths of `steps`, which have been carried
/// out. Reads the content that they brought, unless they are those of an undo.
Result<CommitImage> TakeImage(const BaseDirectory& base,
                              const CommitSteps& steps, bool is_undo);

/// Whether a later commit or undo left object `ino` with this ctime.
using IsOurDoing = std::function<Result<bool>(uint64_t ino, Timestamp ctime)>;

/// The differences between the base and `image`. Where only a ctime differs,
/// compares xattrs and content. For files too large for that, calls `is_ours`;
/// without `is_ours`, they count as unchanged.
Result<std::vector<Conflict>> CompareImage(const BaseDirectory& base,
                                           const CommitImage& image,
                                           const IsOurDoing& is_ours = {});

/// Adapts `undo`, which undoes the commit of `image`: directories whose mtime
/// has changed since then keep their present mtime.
Status KeepLaterTimes(const BaseDirectory& base, const CommitImage& image,
                      CommitSteps& undo);

/// Encodes per docs/format.md, "Commit image".
[[nodiscard]] Bytes EncodeImage(const CommitImage& image);
Result<CommitImage> DecodeImage(ByteSpan in);

}  // namespace txfs

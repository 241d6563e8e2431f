#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cli/diff/file_change.h"
#include "cli/protocol/connection.h"

namespace txfs::cli {

/// Reads contents of sides by requests for parts of files, as few of them as
/// the limits of a request allow.
class ContentRequest {
 public:
  /// Makes the item for a part of a side, without offset and length.
  using ItemOf = std::function<Json(const WantedSide& side, uint64_t offset,
                                    uint64_t length)>;

  /// `request`: "read" or "read_ended".
  ContentRequest(Connection& connection, const char* request, ItemOf item_of)
      : connection_(connection),
        request_(request),
        item_of_(std::move(item_of)) {}

  /// Each content is at most `limit` bytes (EFBIG).
  Result<Contents> ReadWhole(std::span<const WantedSide> sides, uint64_t limit);
  /// Reads a byte of each.
  Result<std::vector<Status>> Probe(std::span<const WantedSide> sides);

 private:
  /// A part of a file that is asked for.
  struct Part {
    size_t side = 0;  ///< index
    uint64_t offset = 0, length = 0;
  };
  using TakePart = std::function<void(const Part&, Result<std::string>)>;
  /// Asks for `parts` in their order and passes each to `take`.
  Status Read(std::span<const WantedSide> sides, std::span<const Part> parts,
              const TakePart& take);
  /// As Read, for as many as one request may have.
  Status ReadBatch(std::span<const WantedSide> sides,
                   std::span<const Part> parts, const TakePart& take);
  /// Reads on after `content`, which is not all.
  Status ReadRest(std::span<const WantedSide> sides, size_t side,
                  uint64_t limit, Result<std::string>& content);

  Connection& connection_;
  const std::string request_;
  const ItemOf item_of_;
};

}  // namespace txfs::cli

#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "journal/check.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Looks at the segments in `spool/` of a transaction directory.
class SpoolReader {
 public:
  /// EBADMSG when there is no such directory.
  static Result<SpoolReader> Open(int dir);

  /// Reads the whole record; EBADMSG, as a sentence about `SEGMENT at N`.
  Status Verify(const ContentRef& ref);
  /// Names in the directory.
  Result<std::vector<std::string>> List();

 private:
  explicit SpoolReader(UniqueFd dir) : dir_(std::move(dir)) {}

  UniqueFd dir_;
  UniqueFd segment_;
  uint32_t open_ = 0;  ///< whose descriptor that is
  Bytes buffer_;
};

/// Checks the content that `tables` point at, and what else the states at
/// savepoints (`pasts`) need.
void CheckContent(SpoolReader& spool, const Image& tables,
                  const std::vector<Image>& pasts, Findings findings);

/// The segments that `image` needs.
[[nodiscard]] std::set<uint32_t> SegmentsOf(const Image& image);

/// Checks the names in `spool/`: `used` is what they should be.
Status CheckSegments(SpoolReader& spool, const std::set<uint32_t>& used,
                     Findings findings);

}  // namespace txfs

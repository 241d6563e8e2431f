#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "journal/check.h"
#include "journal/check_log.h"
#include "journal/support/result.h"
#include "journal/support/unique_fd.h"

namespace txfs {

/// Reads the segments in `spool/` of a transaction directory.
class SpoolReader {
 public:
  /// EBADMSG if the directory is missing.
  static Result<SpoolReader> Open(int dir);

  /// Reads the whole record. EBADMSG, with a message about `SEGMENT at
  /// POSITION`.
  Status Verify(const ContentRef& ref);
  /// The names in the directory.
  Result<std::vector<std::string>> List();

 private:
  explicit SpoolReader(UniqueFd dir) : dir_(std::move(dir)) {}

  UniqueFd dir_;
  UniqueFd segment_;
  uint32_t open_ = 0;  ///< the segment of `segment_`; 0: none
  Bytes buffer_;
};

/// Checks the content that `tables` refer to, and the further content that the
/// states at savepoints need, which `visit_pasts` visits as
/// Replay::VisitPasts.
void CheckContent(
    SpoolReader& spool, const Image& tables,
    const std::function<void(const Replay::PastVisitor&)>& visit_pasts,
    Findings findings);

/// The segments that `image` needs.
[[nodiscard]] std::set<uint32_t> SegmentsOf(const Image& image);
/// The segments that the values of `rewind` need.
[[nodiscard]] std::set<uint32_t> SegmentsOf(const Rewind& rewind);

/// Checks the names in `spool/`. `used`: the ids of all segments in use.
Status CheckSegments(SpoolReader& spool, const std::set<uint32_t>& used,
                     Findings findings);

}  // namespace txfs

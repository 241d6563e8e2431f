#pragma once

#include <map>
#include <string>
#include <vector>

#include "journal/base/result.h"
#include "journal/base/unique_fd.h"
#include "journal/check.h"

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

/// Checks the content that `tables` point at, and the names in `spool/`.
Status CheckSpool(SpoolReader& spool, const Image& tables, Findings findings);

}  // namespace txfs

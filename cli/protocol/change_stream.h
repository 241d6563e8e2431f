#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/protocol/framing.h"
#include "fs/diff/changes.h"
#include "journal/support/bytes.h"
#include "journal/support/result.h"

namespace txfs::cli {

// Changes of a reply are in the payloads of its messages, which are one stream
// of records: a 32-bit length, then that many bytes of one change.

/// Sends changes one after another; holds no more than one payload of them,
/// unless one change is larger.
class ChangeSender {
 public:
  explicit ChangeSender(const FrameSink& sink) : sink_(sink) {}

  Status Add(const NetChange& change);
  /// Ends the reply; the last message also has the members of `tail`.
  Status Finish(Json tail);

 private:
  Status Send(Json header, size_t size);

  const FrameSink& sink_;
  Bytes waiting_;
};

/// Takes what a ChangeSender sent.
class ChangeReceiver {
 public:
  /// A payload of the reply. EPROTO for invalid data.
  Status Take(std::string_view payload);
  /// All changes, at the end of the reply. EPROTO if the last one is not whole.
  Result<std::vector<NetChange>> Finish();

 private:
  std::vector<NetChange> changes_;
  std::string rest_;  ///< the begin of a record
};

}  // namespace txfs::cli

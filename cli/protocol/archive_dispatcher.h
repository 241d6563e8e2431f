#pragma once

#include <string>

#include "cli/protocol/framing.h"
#include "fs/workspace/archive.h"
#include "journal/support/pieces.h"

namespace txfs::cli {

/// Sends items in frames of bounded size; the last one also has the members of
/// `tail`.
Status SendList(Json items, const char* key, const Json& tail,
                const FrameSink& sink);

/// Most items of a request for parts of files.
inline constexpr size_t kReadItemsMax = 1000;

/// Reads what `item` names from `offset` on into `out`.
using ReadItem = std::function<Result<size_t>(const Json& item, uint64_t offset,
                                              MutableByteSpan out)>;
/// Answers a request for parts of files. An error of an item is in its place.
Status AnswerParts(const Json& request, const ReadItem& read,
                   const FrameSink& sink);

/// Runs `answer` with a sink. Sends its error to the same sink, unless the sink
/// itself failed. Returns the sink's error.
Status AnswerWith(const std::function<Status(const FrameSink&)>& answer,
                  const FrameSink& sink);

/// Tells the mounts of other transactions than `own_id` in `store` that the
/// base changed. Empty: tells none.
using TellSiblings =
    std::function<void(Store& store, const std::string& own_id)>;

/// Finishes the commit of a process that died, if there is one, and calls
/// `tell`. Does nothing if another process is carrying out the commit. Returns
/// the id of the finished commit, or "".
Result<std::string> RollForward(Archive& archive, const std::string& own_id,
                                const TellSiblings& tell);
/// As RollForward, before a request is answered; reports the commit to the
/// requester.
Status RollForward(Archive& archive, const std::string& own_id,
                   const TellSiblings& tell, const FrameSink& sink);

/// Whether the request reads content that an earlier answer listed. There are
/// many of these, and each search for an interrupted commit lists the history:
/// the request that listed the content has searched for one.
[[nodiscard]] bool ReadsListed(const Json& request);

/// Answers the requests of the control protocol for ended transactions.
/// Thread-safe as Archive is.
class ArchiveDispatcher {
 public:
  /// `own_id`: the open transaction of `archive`; empty: none.
  ArchiveDispatcher(Archive& archive, std::string own_id, TellSiblings tell)
      : archive_(archive), own_id_(std::move(own_id)), tell_(std::move(tell)) {}

  /// Sends the reply to `sink`, as Dispatcher::Handle.
  Status Handle(const Json& request, const FrameSink& sink);
  /// As Handle, but returns errors of the request, and does not call
  /// RollForward.
  Status Answer(const Json& request, const FrameSink& sink);

 private:
  Status AnswerUndo(const Json& request, const FrameSink& sink);
  Status AnswerShow(const Json& request, const FrameSink& sink);
  Status AnswerReadEnded(const Json& request, const FrameSink& sink);
  Status AnswerGc(const Json& request, const FrameSink& sink);

  Archive& archive_;
  const std::string own_id_;
  const TellSiblings tell_;
};

}  // namespace txfs::cli

#pragma once

#include <string>

#include "cli/protocol/framing.h"
#include "fs/workspace/archive.h"
#include "journal/support/pieces.h"

namespace txfs::cli {

/// Sends items in frames of bounded size; `tail` goes with the last one.
Status SendList(const Json& items, const char* key, const Json& tail,
                const FrameSink& sink);

/// Answers a request for a part of a file with what `read` reads.
Status AnswerPart(const Json& request, const ReadAt& read,
                  const FrameSink& sink);

/// Runs `answer` with a sink; when it fails, the error goes to the same sink,
/// unless that is what failed. Returns the sink's error.
Status AnswerWith(const std::function<Status(const FrameSink&)>& answer,
                  const FrameSink& sink);

/// Tells the mounts of other transactions in `store` than `own_id` that the
/// base changed. Empty: nobody is told.
using TellSiblings =
    std::function<void(Store& store, const std::string& own_id)>;

/// Finishes the commit that a process died in, if there is one, and has `tell`
/// say that the base changed. Who is still at it is left alone. Returns the id
/// of what was finished, or "".
Result<std::string> RollForward(Archive& archive, const std::string& own_id,
                                const TellSiblings& tell);
/// The same before a request is answered: says so to who asked.
Status RollForward(Archive& archive, const std::string& own_id,
                   const TellSiblings& tell, const FrameSink& sink);

/// Answers the requests of the control protocol that are about ended
/// transactions. Thread-safe as Archive is.
class ArchiveDispatcher {
 public:
  /// `own_id`: the transaction that `archive` has open; empty: none.
  ArchiveDispatcher(Archive& archive, std::string own_id, TellSiblings tell)
      : archive_(archive), own_id_(std::move(own_id)), tell_(std::move(tell)) {}

  /// Gives the reply to `sink`, as Dispatcher::Handle does.
  Status Handle(const Json& request, const FrameSink& sink);
  /// The same but for errors of the request, which are returned, and without
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

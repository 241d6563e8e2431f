#pragma once

#include "cli/framing.h"
#include "fs/archive.h"

namespace txfs::cli {

/// Sends items in frames of bounded size; `tail` goes with the last one.
Status SendList(const Json& items, const char* key, const Json& tail,
                const FrameSink& sink);

/// Runs `answer` with a sink; when it fails, the error goes to the same sink,
/// unless that is what failed. Returns the sink's error.
Status AnswerWith(const std::function<Status(const FrameSink&)>& answer,
                  const FrameSink& sink);

/// Answers the requests of the control protocol that are about ended
/// transactions. Thread-safe as Archive is.
class ArchiveDispatcher {
 public:
  explicit ArchiveDispatcher(Archive& archive) : archive_(archive) {}

  /// Gives the reply to `sink`, as Dispatcher::Handle does.
  Status Handle(const Json& request, const FrameSink& sink) {
    return AnswerWith(
        [&](const FrameSink& checked) { return Answer(request, checked); },
        sink);
  }
  /// The same but for errors of the request, which are returned.
  Status Answer(const Json& request, const FrameSink& sink);

 private:
  Status AnswerUndo(const Json& request, const FrameSink& sink);
  Status AnswerShow(const Json& request, const FrameSink& sink);
  Status AnswerReadEnded(const Json& request, const FrameSink& sink);
  Status AnswerGc(const Json& request, const FrameSink& sink);

  Archive& archive_;
};

}  // namespace txfs::cli

#include "cli/protocol/archive_dispatcher.h"

#include <utility>

#include "cli/protocol/change_stream.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {
namespace {

constexpr size_t kPerFrame = 1000;

}  // namespace

Status SendList(Json items, const char* key, const Json& tail,
                const FrameSink& sink) {
  Frame frame;
  Json& list = frame.header[key] = Json::array();
  size_t left = items.size();
  for (Json& item : items) {
    list.push_back(std::move(item));
    --left;
    if (list.size() < kPerFrame || left == 0) continue;
    frame.header["more"] = true;
    TRY(sink(frame));
    list = Json::array();
  }
  frame.header.erase("more");
  frame.header.update(tail);
  return sink(frame);
}

namespace {

/// The bytes that a request for parts of files asks for.
Result<size_t> LengthOf(const Json& items) {
  size_t total = 0;
  for (const Json& item : items) {
    const uint64_t length = GetUint(item, "length");
    if (length > kPayloadMax - total) {
      return Fail(EMSGSIZE, "a request asks for too many bytes");
    }
    total += length;
  }
  return total;
}

}  // namespace

Status AnswerParts(const Json& request, const ReadItem& read,
                   const FrameSink& sink) {
  const Json& items = GetMember(request, "items");
  if (items.size() > kReadItemsMax) {
    return Fail(EMSGSIZE, "a request asks for too many files");
  }
  Frame frame;
  frame.payload.resize(TRY(LengthOf(items)));
  const MutableByteSpan all = std::as_writable_bytes(std::span(frame.payload));
  size_t used = 0;
  Json& parts = frame.header["parts"] = Json::array();
  for (const Json& item : items) {
    const auto got = read(item, GetUint(item, "offset"),
                          all.subspan(used, GetUint(item, "length")));
    if (got) {
      parts.push_back(*got);
      used += *got;
    } else {
      parts.push_back({{"error", ToJson(got.error())}});
    }
  }
  frame.payload.resize(used);
  return sink(frame);
}

Status AnswerWith(const std::function<Status(const FrameSink&)>& answer,
                  const FrameSink& sink) {
  // An error of the sink must not be answered through the same sink.
  Status sent;
  const Status answered = answer([&](const Frame& frame) -> Status {
    sent = sink(frame);
    return sent;
  });
  if (!sent || answered) return sent;
  Frame frame;
  frame.header["error"] = ToJson(answered.error());
  return sink(frame);
}

Result<std::string> RollForward(Archive& archive, const std::string& own_id,
                                const TellSiblings& tell) {
  auto recovered = archive.Recover();
  if (!recovered && recovered.error().kind == ErrorKind::kBusy) return "";
  const std::string id = TRY(std::move(recovered));
  if (!id.empty() && tell) tell(archive.store(), own_id);
  return id;
}

Status RollForward(Archive& archive, const std::string& own_id,
                   const TellSiblings& tell, const FrameSink& sink) {
  const std::string id = TRY(RollForward(archive, own_id, tell));
  if (id.empty()) return {};
  Frame frame;
  frame.header["finished"] = id;
  frame.header["more"] = true;
  return sink(frame);
}

bool ReadsListed(const Json& request) {
  const std::string name = GetBytes(request, "request");
  return name == "read" || name == "read_ended";
}

Status ArchiveDispatcher::Handle(const Json& request, const FrameSink& sink) {
  return AnswerWith(
      [&](const FrameSink& checked) -> Status {
        if (ReadsListed(request)) return Answer(request, checked);
        TRY(RollForward(archive_, own_id_, tell_, checked));
        return Answer(request, checked);
      },
      sink);
}

Status ArchiveDispatcher::Answer(const Json& request, const FrameSink& sink) {
  const std::string name = GetBytes(request, "request");
  if (name == "undo") return AnswerUndo(request, sink);
  if (name == "show") return AnswerShow(request, sink);
  if (name == "read_ended") return AnswerReadEnded(request, sink);
  if (name == "gc") return AnswerGc(request, sink);
  return Fail(0, "the daemon does not know the request \"" + name + "\"",
              "the daemon is another version of txfs: run `txfs umount`, then "
              "`txfs mount`");
}

Status ArchiveDispatcher::AnswerUndo(const Json& request,
                                     const FrameSink& sink) {
  const UndoReport report =
      TRY(archive_.Undo(GetBytes(request, "transaction")));
  // Nobody is to see the old base once the undo is reported.
  if (report.conflicts.empty() && tell_) tell_(archive_.store(), own_id_);
  Frame frame;
  frame.header["report"] = ToJson(report);
  return sink(frame);
}

Status ArchiveDispatcher::AnswerShow(const Json& request,
                                     const FrameSink& sink) {
  const CommitView view = TRY(archive_.Show(GetBytes(request, "transaction")));
  ChangeSender sender(sink);
  for (const NetChange& change : view.changes) TRY(sender.Add(change));
  return sender.Finish({{"transaction", ToJson(view.summary)},
                        {"has_changes", view.has_changes},
                        {"lost", ArrayOf(view.lost)}});
}

Status ArchiveDispatcher::AnswerReadEnded(const Json& request,
                                          const FrameSink& sink) {
  const auto read = [&](const Json& item, uint64_t offset,
                        MutableByteSpan out) {
    return archive_.ReadEnded(EndedSideFromJson(item), offset, out);
  };
  return AnswerParts(request, read, sink);
}

Status ArchiveDispatcher::AnswerGc(const Json& request, const FrameSink& sink) {
  Retention retention = archive_.retention();
  if (request.contains("commits")) {
    retention.commits = GetUint(request, "commits");
  }
  if (request.contains("bytes")) retention.bytes = GetUint(request, "bytes");
  const GcReport report = TRY(archive_.CollectGarbage(retention));
  Frame frame;
  frame.header["commits"] = report.commits;
  frame.header["bytes"] = report.bytes;
  frame.header["forgotten"] = report.forgotten;
  return sink(frame);
}

}  // namespace txfs::cli

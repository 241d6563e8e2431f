// What arrives at a client: the low bits of the first byte say what it has
// asked for, the highest two how many descriptors come along, the rest is the
// answer.

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "cli/diff/diff_format.h"
#include "cli/output/conflict_text.h"
#include "cli/output/limit_text.h"
#include "cli/output/log_format.h"
#include "cli/output/summary_format.h"
#include "cli/output/text.h"
#include "cli/protocol/change_stream.h"
#include "cli/protocol/client.h"
#include "cli/protocol/pending.h"
#include "cli/protocol/wire.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/stream.h"

namespace txfs::cli {
namespace {

using fuzz::Demand;

/// To somebody whose answers are known already.
class ReplayedConnection : public Connection {
 public:
  explicit ReplayedConnection(UniqueFd stream) : stream_(std::move(stream)) {}

 protected:
  Status Exchange(const Json&, const FrameSink& sink) override {
    for (;;) {
      const auto frame = TRY(ReadFrame(stream_.get(), kReplyMax));
      if (!frame) return Fail(EPIPE, "the daemon is gone");
      TRY(sink(*frame));
      if (!GetBool(frame->header, "more")) return {};
    }
  }

 private:
  UniqueFd stream_;
};

/// What was read says the same when it is sent on.
template <class Value, class Read>
void CheckStable(const Value& value, const Read& read) {
  const Json json = ToJson(value);
  Demand(ToJson(read(json)) == json, "what is sent is what is read");
}

/// What is printed is a line, whatever is in it.
void CheckLine(std::string text) {
  if (text.ends_with('\n')) text.pop_back();
  Demand(EscapeControls(text) == text, "a line has no control characters");
}

void CheckDocument(const Document& document) {
  Demand(Document::parse(Dump(document), nullptr, false) == document,
         "JSON says the same");
}

/// What is sent of a list.
std::string SentOf(const std::vector<NetChange>& changes) {
  std::string sent;
  const FrameSink sink = [&](const Frame& frame) -> Status {
    sent += frame.payload;
    return {};
  };
  ChangeSender sender(sink);
  for (const NetChange& change : changes) {
    Demand(sender.Add(change).has_value(), "a change is sent");
  }
  Demand(sender.Finish(Json::object()).has_value(), "all are sent");
  return sent;
}

void CheckChanges(const std::vector<NetChange>& changes) {
  const std::string sent = SentOf(changes);
  ChangeReceiver receiver;
  for (size_t at = 0; at < sent.size(); at += 5) {
    Demand(receiver.Take(sent.substr(at, 5)).has_value(), "it is taken");
  }
  const auto received = receiver.Finish();
  Demand(received && SentOf(*received) == sent, "what is sent is what is read");
  for (const NetChange& change : changes) {
    const FileChange shown{.net = change};
    std::ignore = NameStatusLine(shown, false);
    std::ignore = StatName(shown);
    std::ignore = Dump(ChangeDocument(shown));
  }
}

void CheckConflicts(const std::vector<Conflict>& conflicts) {
  for (const Conflict& conflict : conflicts) CheckLine(ConflictText(conflict));
  CheckDocument(ConflictDocuments(conflicts));
}

void CheckCommit(const CommitReport& report) {
  CheckStable(report, CommitReportFromJson);
  CheckConflicts(report.conflicts);
  CheckConflicts(report.resolved);
  std::ignore = Dump(LimitDocuments(report.limits));
  if (!report.denied.empty()) CheckLine(DeniedText(report.denied));
}

constexpr uint64_t kLimit = 1 << 20;

void CheckContents(const Result<Contents>& contents) {
  if (!contents) return;
  for (const Result<std::string>& content : *contents) {
    Demand(!content || content->size() <= kLimit, "content has a limit");
  }
}

void AskForContent(Client& client) {
  ChangeSide side;
  side.delta = Delta{.name = "v", .keep = 3, .size = 9, .ranges = {{2, 9}}};
  const WantedSide wanted{&side, true};
  CheckContents(client.ReadEnded({&wanted, 1}, kLimit));
}

void AskWhatWaits(Client& client) {
  const auto pending = client.Pending();
  if (!pending) return;
  for (const PendingQuestion& question : *pending) {
    std::string text = PendingText(question);
    std::erase(text, '\n');
    Demand(EscapeControls(text) == text, "text has no control characters");
    const auto read =
        Document::parse(Dump(PendingDocument(question)), nullptr, false);
    Demand(read.is_object() && read["id"] == question.id &&
               read["names"].size() == question.names.size(),
           "JSON says the same");
  }
}

using Question = std::function<void(Client&)>;

const std::array<Question, 16>& Questions() {
  static const std::array<Question, 16> kQuestions{
      [](Client& client) {
        const auto reply = client.GetStatus();
        if (reply) CheckStable(reply->status, WorkspaceStatusFromJson);
      },
      [](Client& client) {
        const auto conflicts = client.FindConflicts();
        if (conflicts) CheckConflicts(*conflicts);
      },
      [](Client& client) {
        const auto changes = client.Changes(true, {}, {});
        if (changes) CheckChanges(*changes);
      },
      [](Client& client) {
        const auto reply = client.Commit({}, [](size_t, size_t) {});
        if (reply) CheckCommit(reply->report);
      },
      [](Client& client) {
        const auto report = client.Plan({});
        if (report) CheckStable(*report, PlanReportFromJson);
      },
      [](Client& client) {
        const auto report = client.Undo("1");
        if (report) CheckStable(*report, UndoReportFromJson);
      },
      [](Client& client) {
        const auto view = client.Show("1");
        if (!view) return;
        CheckChanges(view->changes);
        CheckStable(view->summary, SummaryFromJson);
        std::ignore = Dump(SummaryDocument(view->summary));
        CheckLine(UndoMark(view->summary));
        CheckConflicts(view->lost);
      },
      AskForContent,
      [](Client& client) { std::ignore = client.CollectGarbage({}, {}); },
      [](Client& client) { std::ignore = client.Discard({}); },
      [](Client& client) {
        const auto savepoint = client.MakeSavepoint("s");
        if (savepoint) CheckStable(*savepoint, SavepointFromJson);
      },
      [](Client& client) { std::ignore = client.Rollback("s"); },
      [](Client& client) {
        const auto log = client.Log({});
        if (!log) return;
        for (const LogEntry& entry : log->entries) {
          CheckStable(entry, LogEntryFromJson);
          CheckLine(LogLine(entry));
          std::ignore = DenialText(entry);
          std::ignore = Dump(LogDocument(entry));
        }
      },
      [](Client& client) {
        std::array<ChangeSide, 2> sides;
        sides[0].attr.size = 9;
        sides[1].ino = Ino{7};
        const std::array<WantedSide, 2> wanted{
            {{&sides[0], true}, {&sides[1], false}}};
        const auto contents = client.ReadContents(wanted, kLimit);
        CheckContents(contents);
        Demand(!contents || contents->size() == 2, "each has its content");
      },
      AskWhatWaits,
      [](Client& client) { std::ignore = client.Answer(1, true); },
  };
  return kQuestions;
}

void Run(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto which = static_cast<unsigned char>(bytes.front());
  const size_t before = fuzz::CountDescriptors();
  {
    UniqueFd stream = fuzz::StreamOf(bytes.substr(1), which >> 6U);
    if (!stream.valid()) return;
    Client client(std::make_unique<ReplayedConnection>(std::move(stream)));
    Questions()[which % Questions().size()](client);
  }
  Demand(fuzz::CountDescriptors() == before, "no descriptor is left open");
}

}  // namespace
}  // namespace txfs::cli

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::cli::Run(txfs::fuzz::TextOf(data, size));
  return 0;
}

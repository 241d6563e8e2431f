#include <charconv>

#include "cli/commands/commands.h"
#include "cli/locate/locate.h"
#include "cli/output/errors.h"
#include "cli/output/json.h"
#include "cli/output/output.h"
#include "cli/output/text.h"

namespace txfs::cli {
namespace {

Result<uint64_t> ReadId(const std::string& text) {
  uint64_t id = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, id);
  if (read.ec == std::errc() && read.ptr == end && id > 0) return id;
  return Fail(
      ErrorKind::kUsage, 0,
      "\"" + EscapeControls(text) + "\" is not the number of a question",
      "`txfs pending` shows the numbers");
}

Result<Client> ConnectMounted(const Place& place) {
  if (place.daemon != DaemonState::kRunning) {
    return Fail(0, "the transaction of " + place.workspace + " is not mounted",
                "questions wait only while the transaction is mounted");
  }
  return Connect(place);
}

}  // namespace

Result<int> RunPending(const Context& context, bool json) {
  const Place place = TRY(Locate(context));
  Client client = TRY(ConnectMounted(place));
  const auto questions = TRY(client.Pending());
  std::string text;
  Document documents = Document::array();
  for (const PendingQuestion& question : questions) {
    documents.push_back(PendingDocument(question));
    text += PendingText(question);
  }
  if (questions.empty()) text = "no operation waits for an answer\n";
  Output output;
  output.Write(json ? Dump(documents, 2) + "\n" : text);
  TRY(output.Finish());
  return 0;
}

Result<int> RunAnswer(const Context& context,
                      const std::vector<std::string>& ids, bool yes) {
  std::vector<uint64_t> numbers;
  for (const std::string& id : ids) numbers.push_back(TRY(ReadId(id)));
  const Place place = TRY(Locate(context));
  Client client = TRY(ConnectMounted(place));
  // The others are answered although one cannot be.
  Status outcome;
  for (const uint64_t id : numbers) {
    Status answered = client.Answer(id, yes);
    if (outcome) {
      outcome = std::move(answered);
    } else if (!answered) {
      Report(answered.error());
    }
  }
  TRY(std::move(outcome));
  return 0;
}

}  // namespace txfs::cli

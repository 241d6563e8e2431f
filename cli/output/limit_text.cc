#include "cli/output/limit_text.h"

#include <set>
#include <utility>

#include "cli/output/errors.h"
#include "cli/output/held_text.h"
#include "cli/output/text.h"
#include "policy/words.h"

namespace txfs::cli {
namespace {

using policy::Measure;

std::string DeedOf(const LimitExcess& limit) {
  const std::string count = std::to_string(limit.count);
  const std::string things(policy::ThingsOf(limit.of));
  switch (limit.of) {
    case Measure::kBaseRemoved:
      return "it removes " + count +
             (limit.total ? " of " + std::to_string(*limit.total) : "") + " " +
             things;
    case Measure::kBytesWritten:
      return "it has " + HumanSize(limit.count) + " of " + things;
    case Measure::kInodesMade:
      return "it makes " + count + " " + things;
  }
  return "";
}

std::string_view MomentOf(const policy::Limit& limit) {
  return limit.at_commit ? "commit" : "operation";
}

std::string Sentence(const LimitExcess& limit) {
  return DeedOf(limit) + ", more than the limit " + limit.id + " allows (" +
         limit.allowance + ")";
}

}  // namespace

void SayExceeded(const std::vector<LimitExcess>& limits) {
  for (const LimitExcess& limit : limits) {
    if (limit.stops()) continue;
    Say("note: about this commit: " + Sentence(limit) +
        (limit.accepted ? "; that was accepted" : ": " + limit.reason));
  }
}

std::unexpected<Error> StopError(const std::string& verb,
                                 const std::vector<LimitExcess>& limits,
                                 const HeldReport& held,
                                 const CommitCommand& again) {
  std::string why;
  std::string accepts = again.without_held ? again.accepted : "";
  for (const LimitExcess& limit : limits) {
    if (limit.stops()) {
      why +=
          (why.empty() ? "" : "; and ") + Sentence(limit) + ": " + limit.reason;
    }
    const bool is_new = limit.stops() || !again.without_held;
    if (is_new && (limit.stops() || limit.accepted)) {
      accepts += " --accept " + limit.id;
    }
  }
  // What the user leaves out is not to be accepted.
  std::set<std::string> rules;
  if (!again.without_held) {
    for (const HeldChange& change : held.changes) rules.insert(change.rule);
  }
  for (const std::string& rule : rules) accepts += " --accept " + rule;
  if (held.stops()) why += (why.empty() ? "" : "; and ") + HeldCount(held);
  const std::string command = "txfs commit" + again.options;
  std::string hint = held.stops() ? "`txfs diff --held` shows what is held; "
                                  : "`txfs diff` shows the changes; ";
  hint += "to commit them, run `" + command +
          (again.without_held ? " --without-held" : "") + accepts +
          again.paths + "`";
  if (held.stops() && !again.resolves) {
    hint += "; to commit everything else, `" + command + " --without-held" +
            again.paths + "`";
  }
  return Fail(ErrorKind::kVetoed, 0, "nothing " + verb + " committed: " + why,
              std::move(hint));
}

std::string MomentText(const policy::Limit& limit) {
  const std::string moment(MomentOf(limit));
  if (!limit.window) return moment;
  return moment + ", within " + std::to_string(*limit.window) + " s";
}

Document LimitDocument(const policy::Limit& limit) {
  Document document;
  document["id"] = limit.id;
  document["action"] = policy::NameOf(limit.action);
  document["errno"] = ErrnoName(limit.error);
  PutPath(document, "file", limit.place.file);
  document["line"] = limit.place.line;
  document["of"] = policy::NameOf(limit.of);
  document["max"] = nullptr;
  if (limit.max) document["max"] = *limit.max;
  document["fraction"] = nullptr;
  if (limit.fraction) document["fraction"] = *limit.fraction;
  document["window"] = nullptr;
  if (limit.window) document["window"] = *limit.window;
  document["at"] = MomentOf(limit);
  document["paths"] = limit.patterns;
  document["reason"] = limit.reason;
  document["suggest"] = limit.suggest;
  return document;
}

Document LimitDocuments(const std::vector<LimitExcess>& limits) {
  Document documents = Document::array();
  for (const LimitExcess& limit : limits) {
    Document item;
    item["id"] = limit.id;
    item["of"] = policy::NameOf(limit.of);
    item["count"] = limit.count;
    item["total"] = nullptr;
    if (limit.total) item["total"] = *limit.total;
    item["allowance"] = limit.allowance;
    item["action"] = limit.refuses ? "deny" : "audit";
    item["accepted"] = limit.accepted;
    item["reason"] = ToUtf8(limit.reason);
    item["suggest"] = ToUtf8(limit.suggest);
    documents.push_back(std::move(item));
  }
  return documents;
}

}  // namespace txfs::cli

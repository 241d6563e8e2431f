#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output/json.h"
#include "fs/workspace/workspace.h"
#include "policy/sources.h"

namespace txfs::cli {

/// The control protocol's encoding of values between daemon and command.
/// FromJson returns zero values for input that ToJson did not make.
Json ToJson(const Error& error);
Json ToJson(const LogEntry& entry);  ///< without its edits
Json ToJson(const WorkspaceStatus& status);
Json ToJson(const Conflict& conflict);
Json ToJson(const BuiltOn& built_on);
Json ToJson(const LimitExcess& limit);
Json ToJson(const HeldChange& held);
Json ToJson(const HeldRest& rest);
Json ToJson(const HeldReport& held);
Json ToJson(const CommitReport& report);
Json ToJson(const PlanReport& report);
Json ToJson(const UndoReport& report);
Json ToJson(const TransactionSummary& summary);
Json ToJson(const RunRecord& run);
Json ToJson(const Savepoint& savepoint);
Json ToJson(const CallMark& mark);
Json ToJson(const Call& call);
Json ToJson(const policy::SourceText& source);
Json ToJson(const RuleCount& denied);

template <class Items>
Json ArrayOf(const Items& items) {
  Json array = Json::array();
  for (const auto& item : items) array.push_back(ToJson(item));
  return array;
}

Error ErrorFromJson(const Json& json);
LogEntry LogEntryFromJson(const Json& json);
WorkspaceStatus WorkspaceStatusFromJson(const Json& json);
CommitReport CommitReportFromJson(const Json& json);
PlanReport PlanReportFromJson(const Json& json);
UndoReport UndoReportFromJson(const Json& json);
std::vector<Conflict> ConflictsFromJson(const Json& object, const char* key);
/// Of "built_on".
std::vector<BuiltOn> BuiltOnFromJson(const Json& object);
TransactionSummary SummaryFromJson(const Json& json);
/// Bounded.
RunRecord RunFromJson(const Json& json);
Savepoint SavepointFromJson(const Json& json);
/// Any strings, of any length.
CallMark CallMarkFromJson(const Json& json);
Call CallFromJson(const Json& json);
policy::SourceText SourceTextFromJson(const Json& json);
std::vector<RuleCount> DeniedFromJson(const Json& object);

/// "fail", "mine", "theirs", "merge"; other values and names are "fail".
[[nodiscard]] std::string_view OnConflictName(OnConflict on_conflict);
[[nodiscard]] OnConflict OnConflictFromName(std::string_view name);

Json EncodeList(const std::vector<std::string>& list);
std::vector<std::string> DecodeList(const Json& json);

/// The members of a `read_ended` request: where a side of an ended commit has
/// its content.
Json EndedSideToJson(const ChangeSide& side);
ChangeSide EndedSideFromJson(const Json& request);

}  // namespace txfs::cli

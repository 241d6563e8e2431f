#include "fs/planning/commit_words.h"

#include <sys/stat.h>

#include <map>

#include "fs/planning/conflicts.h"
#include "fs/vault/vaults.h"

namespace txfs {
namespace {

uint64_t BytesOf(const Delta& delta) {
  uint64_t bytes = 0;
  for (const Range& range : delta.ranges) bytes += range.to - range.from;
  return bytes;
}

class StepDescriber {
 public:
  StepDescriber(Frozen& frozen, const CommitPlan& plan)
      : frozen_(frozen), plan_(plan) {}

  Result<std::vector<std::string>> Run() {
    for (const PlannedStep& planned : plan_.steps) {
      if (std::string line = TRY(Describe(planned)); !line.empty()) {
        lines_.push_back(std::move(line));
      }
    }
    return std::move(lines_);
  }

 private:
  Result<std::string> Describe(const PlannedStep& planned) {
    const CommitStep& step = planned.step;
    switch (step.kind) {
      case StepKind::kMove:
        return IsKeeping(step.to) ? DescribeDetach(step)
                                  : DescribeAttach(planned);
      case StepKind::kExchange:
        return "replace " + step.to.path;
      case StepKind::kLink:
        return step.to.vault ? "" : "link " + step.to.path;
      case StepKind::kUnlink:
        return step.to.vault ? "" : "unlink " + step.to.path;
      case StepKind::kPatch:
        return "patch " + step.to.path + ": " +
               std::to_string(BytesOf(*step.after)) + " bytes, size " +
               std::to_string(step.after->size);
      case StepKind::kAttributes:
        return DescribeAttributes(step);
    }
    return std::string();
  }

  Result<std::string> DescribeDetach(const CommitStep& step) {
    const struct stat st = TRY(frozen_.base.Stat(step.from.path));
    const std::string path = step.from.path + (S_ISDIR(st.st_mode) ? "/" : "");
    const bool moves = IsSlot(VaultSlot::kMoving, step.to) ||
                       IsBeside(VaultSlot::kMoving, step.to);
    if (!moves) return "delete " + path;
    moved_[KeyOf(step.to)] = path;
    return std::string();
  }

  /// The same for an object that moved away, and for one that replaced it.
  static std::string KeyOf(const Spot& spot) {
    if (!spot.vault) return std::string(BaseName(spot.path));
    return MovingSlotOf(spot.path);
  }

  std::string DescribeAttach(const PlannedStep& planned) {
    const CommitStep& step = planned.step;
    const auto moved = moved_.find(KeyOf(step.from));
    if (moved == moved_.end()) return DescribeNew(planned);
    const bool is_directory = moved->second.ends_with('/');
    const bool is_replaced = IsSlot(VaultSlot::kStaged, step.from);
    return "move " + moved->second + " to " + step.to.path +
           (is_directory ? "/" : "") +
           (is_replaced ? ", with new content" : "");
  }

  std::string DescribeNew(const PlannedStep& planned) const {
    const std::string& path = planned.step.to.path;
    const Inode* inode = frozen_.tree.Find(planned.object);
    if (inode == nullptr || !inode->IsDirectory()) return "create " + path;
    size_t below = 0;
    for (const StagedObject& object : plan_.staged) {
      below +=
          object.spot.path.starts_with(planned.step.from.path + "/") ? 1 : 0;
    }
    return "create " + path + "/" +
           (below == 0 ? "" : " and " + std::to_string(below) + " in it");
  }

  static std::string DescribeAttributes(const CommitStep& step) {
    if (!step.set_after) return {};
    const ObjectAttributes& after = *step.set_after;
    const std::string path =
        ShownPath(step.to.path) +
        (after.type == FileType::kDirectory && !step.to.path.empty() ? "/"
                                                                     : "");
    ObjectAttributes before = step.set_before.value_or(after);
    before.atime = after.atime;
    before.mtime = after.mtime;
    return (before == after ? "set times of " : "set attributes of ") + path;
  }

  Frozen& frozen_;
  const CommitPlan& plan_;
  std::map<std::string, std::string> moved_;  ///< KeyOf to old path
  std::vector<std::string> lines_;
};

}  // namespace

Result<std::vector<std::string>> DescribeSteps(Frozen& frozen,
                                               const CommitPlan& plan) {
  return StepDescriber(frozen, plan).Run();
}

}  // namespace txfs

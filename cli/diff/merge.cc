#include "cli/diff/merge.h"

#include <algorithm>
#include <string>

#include "cli/diff/libgit.h"

namespace txfs::cli {
namespace {

/// As git tells text from what is not.
bool IsBinary(std::string_view content) {
  constexpr size_t kLookAt = 8000;
  return content.substr(0, kLookAt).find('\0') != std::string_view::npos;
}

git_merge_file_input InputOf(std::string_view content) {
  git_merge_file_input input = GIT_MERGE_FILE_INPUT_INIT;
  input.ptr = content.data() == nullptr ? "" : content.data();
  input.size = content.size();
  return input;
}

struct FreeResult {
  void operator()(git_merge_file_result* result) const {
    Git().git_merge_file_result_free(result);
  }
};

}  // namespace

Result<std::optional<MergedText>> MergeTexts(const MergeInput& input) {
  if (std::ranges::any_of(
          std::initializer_list{input.ancestor, input.ours, input.theirs},
          IsBinary)) {
    return std::optional<MergedText>();
  }
  TRY(LoadGit());
  const git_merge_file_input ancestor = InputOf(input.ancestor);
  const git_merge_file_input ours = InputOf(input.ours);
  const git_merge_file_input theirs = InputOf(input.theirs);
  git_merge_file_options options = GIT_MERGE_FILE_OPTIONS_INIT;
  options.our_label = "transaction";
  options.their_label = "workspace";
  git_merge_file_result result{};
  if (Git().git_merge_file(&result, &ancestor, &ours, &theirs, &options) != 0) {
    return GitFailure("merge");
  }
  const std::unique_ptr<git_merge_file_result, FreeResult> owned(&result);
  MergedText merged;
  merged.clean = result.automergeable != 0;
  if (result.ptr != nullptr) merged.content.assign(result.ptr, result.len);
  return std::optional(std::move(merged));
}

}  // namespace txfs::cli

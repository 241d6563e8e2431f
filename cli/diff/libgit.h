#pragma once

#include <git2.h>
#include <git2/sys/mempack.h>
#include <git2/sys/odb_backend.h>
#include <git2/sys/repository.h>

#include "journal/support/result.h"

namespace txfs::cli {

/// What is used of libgit2. It is loaded by the first command that compares or
/// merges files: with it come 16 other libraries, whose symbols take half of
/// the start of a command.
struct LibGit {
  // clang-format off
#define TXFS_GIT_FUNCTIONS(USE)                                           \
  USE(git_diff_find_similar)                                              \
  USE(git_diff_free)                                                      \
  USE(git_diff_get_delta)                                                 \
  USE(git_diff_num_deltas)                                                \
  USE(git_diff_tree_to_tree)                                              \
  USE(git_error_last)                                                     \
  USE(git_index_free)                                                     \
  USE(git_index_new)                                                      \
  USE(git_libgit2_init)                                                   \
  USE(git_libgit2_opts) USE(git_mempack_new) USE(git_merge_file)          \
      USE(git_merge_file_result_free) USE(git_odb_add_backend)            \
          USE(git_odb_free) USE(git_odb_new) USE(git_odb_write)           \
              USE(git_patch_free) USE(git_patch_from_buffers)             \
                  USE(git_patch_from_diff) USE(git_patch_get_delta)       \
                      USE(git_patch_line_stats) USE(git_patch_print)      \
                          USE(git_repository_free)                        \
                              USE(git_repository_set_index)               \
                              USE(git_repository_wrap_odb)                \
                                  USE(git_tree_free) USE(git_tree_lookup)
// clang-format on
#define TXFS_GIT_MEMBER(name) decltype(&::name) name = nullptr;
  TXFS_GIT_FUNCTIONS(TXFS_GIT_MEMBER)
#undef TXFS_GIT_MEMBER
};

/// Loads libgit2 and initialises it without configuration of the user or the
/// system; further calls have no effect. Errors: it is not installed.
Status LoadGit();

/// After LoadGit succeeded.
[[nodiscard]] const LibGit& Git();

/// The error of a failed call of libgit2.
[[nodiscard]] std::unexpected<Error> GitFailure(const char* what);

}  // namespace txfs::cli

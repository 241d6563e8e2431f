#include "cli/diff/libgit.h"

#include <dlfcn.h>

#include <string>

namespace txfs::cli {
namespace {

LibGit functions;

Status Load() {
  void* library = ::dlopen(TXFS_LIBGIT, RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    return Fail(0, std::string("cannot load libgit2: ") + ::dlerror(),
                "install the package of " TXFS_LIBGIT);
  }
#define TXFS_GIT_LOAD(name)                                                \
  functions.name =                                                         \
      reinterpret_cast<decltype(functions.name)>(::dlsym(library, #name)); \
  if (functions.name == nullptr) {                                         \
    return Fail(0, "libgit2 has no function " #name,                       \
                "install the version with which txfs was built");          \
  }
  TXFS_GIT_FUNCTIONS(TXFS_GIT_LOAD)
#undef TXFS_GIT_LOAD
  functions.git_libgit2_init();
  for (const int level : {GIT_CONFIG_LEVEL_PROGRAMDATA, GIT_CONFIG_LEVEL_SYSTEM,
                          GIT_CONFIG_LEVEL_XDG, GIT_CONFIG_LEVEL_GLOBAL}) {
    functions.git_libgit2_opts(GIT_OPT_SET_SEARCH_PATH, level, "");
  }
  return {};
}

}  // namespace

Status LoadGit() {
  static const Status kLoaded = Load();
  return kLoaded;
}

const LibGit& Git() { return functions; }

std::unexpected<Error> GitFailure(const char* what) {
  const git_error* error = functions.git_error_last();
  return Fail(0, std::string("libgit2, ") + what + ": " +
                     (error != nullptr ? error->message : "unknown error"));
}

}  // namespace txfs::cli

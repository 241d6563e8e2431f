#include "cli/registry.h"

#include <fcntl.h>

#include "cli/json.h"
#include "cli/runtime_dir.h"
#include "journal/base/file.h"

namespace txfs::cli {
namespace {

std::string RegistryDirectory() { return StateDirectory() + "/stores"; }

}  // namespace

Status RememberStore(const std::string& workspace, const std::string& store) {
  TRY(MakeDirectories(RegistryDirectory()));
  const Json entry = {{"workspace", EncodeBytes(workspace)},
                      {"store", EncodeBytes(store)}};
  return ReplaceFile(AT_FDCWD, RegistryDirectory() + "/" + HashName(workspace),
                     Dump(entry) + "\n");
}

std::optional<std::string> RegisteredStore(const std::string& workspace) {
  const Result<std::string> text = ReadWholeFile(
      AT_FDCWD, RegistryDirectory() + "/" + HashName(workspace), 1 << 20);
  if (!text) return std::nullopt;
  const Json entry = Json::parse(*text, nullptr, false);
  const std::string store = GetBytes(entry, "store");
  if (store.empty() || GetBytes(entry, "workspace") != workspace) {
    return std::nullopt;
  }
  return store;
}

}  // namespace txfs::cli

#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace txfs::cli {

class NetworkProxy;

/// What name resolution needs of /run. Some are sockets of a resolver.
inline constexpr std::array kResolverPaths = {
    "/run/systemd/resolve", "/run/resolvconf",
    "/run/NetworkManager/resolv.conf"};

/// What a command sees of the machine. All paths are absolute and without
/// symbolic links. Everything that is not named here is read-only.
struct Sandbox {
  /// A directory or file that the command sees at `at`, with what is mounted
  /// in it.
  struct Bind {
    std::string from, at;
    bool writable = false;
    /// Has the same content, and answers at once; "": `from`.
    std::string alike = {};

    /// Where to look for what the command sees.
    [[nodiscard]] const std::string& seen() const {
      return alike.empty() ? from : alike;
    }
  };

  /// A later one covers an earlier one in it. The last is the workspace's.
  std::vector<Bind> binds;
  /// They hide what lies in them, also binds, but not the workspace.
  std::vector<std::string> hidden;
  std::string directory;  ///< in which the command starts
  std::vector<std::pair<std::string, std::string>> environment;  ///< all of it
  bool has_network = true;  ///< that of the machine
  /// Without that: what the command reaches instead; null: nothing. Borrowed.
  NetworkProxy* proxy = nullptr;
  bool may_nest = false;  ///< may make user namespaces
  uint64_t memory = 0;    ///< bytes that each place in memory has; 0: no limit
};

/// The arguments of bwrap for `sandbox`, without the program and the command.
/// `users`: bwrap makes the user namespace; else it is in one already.
/// `open_empty`: opens an empty file, for bwrap alone, and returns its number.
std::vector<std::string> BwrapArguments(const Sandbox& sandbox, bool users,
                                        const std::function<int()>& open_empty);

}  // namespace txfs::cli

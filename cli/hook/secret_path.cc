#include "cli/hook/secret_path.h"

#include <algorithm>
#include <vector>

#include "policy/command.h"
#include "policy/glob.h"

namespace txfs::cli {
namespace {

std::vector<policy::Glob> SecretPatterns() {
  std::vector<policy::Glob> globs;
  // A test compares them with the rules about credentials in
  // policy/default.toml.
  for (const char* pattern : {".env",
                              ".env.*",
                              "*.env",
                              ".envrc",
                              ".vault-token",
                              "secrets.y*ml",
                              "secrets.json",
                              "*.tfstate",
                              "*.tfstate.backup",
                              ".aws",
                              ".ssh",
                              ".gnupg",
                              "**/.aws/**",
                              "**/.azure/**",
                              "**/.git/config",
                              ".netrc",
                              "_netrc",
                              ".npmrc",
                              ".pypirc",
                              ".pgpass",
                              ".my.cnf",
                              ".htpasswd",
                              ".git-credentials",
                              "credentials",
                              "credentials.json",
                              "id_rsa",
                              "id_dsa",
                              "id_ecdsa",
                              "id_ecdsa_sk",
                              "id_ed25519",
                              "id_ed25519_sk",
                              "*.pem",
                              "*.key",
                              "*.p12",
                              "*.pfx",
                              "*.jks",
                              "*.keystore",
                              "*.kdbx",
                              "*.ppk",
                              "**/.docker/config.json",
                              "**/.kube/config",
                              "**/.config/gcloud/**",
                              "**/.ssh/**",
                              "**/.gnupg/**"}) {
    if (auto glob = policy::Glob::Parse(pattern, true)) {
      globs.push_back(*std::move(glob));
    }
  }
  return globs;
}

}  // namespace

bool IsSecretPath(std::string_view path) {
  static const std::vector<policy::Glob> kPatterns = SecretPatterns();
  const std::string_view name = policy::BaseName(path);
  if (name == ".env.example" || name == ".env.sample" ||
      name == ".env.template") {
    return false;
  }
  path.remove_prefix(std::min(path.find_first_not_of('/'), path.size()));
  return std::ranges::any_of(kPatterns, [&](const policy::Glob& pattern) {
    return pattern.Matches(path);
  });
}

}  // namespace txfs::cli

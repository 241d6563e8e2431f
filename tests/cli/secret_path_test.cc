#include "cli/hook/secret_path.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "policy/builtin.h"

namespace txfs::cli {
namespace {

/// The literals in the list `path` of the built-in rule `id`.
std::vector<std::string> PatternsOf(std::string_view id) {
  std::string_view rest = policy::BuiltinText();
  const size_t at = rest.find("id = \"" + std::string(id) + "\"");
  if (at == std::string_view::npos) return {};
  rest.remove_prefix(rest.find("path = [", at));
  rest = rest.substr(0, rest.find(']'));
  std::vector<std::string> patterns;
  for (size_t begin = 0; (begin = rest.find('"', begin)) != rest.npos;) {
    const size_t end = rest.find('"', begin + 1);
    patterns.emplace_back(rest.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return patterns;
}

/// A path that `pattern` matches.
std::string ExampleOf(std::string pattern) {
  for (const std::string_view any : {"**", "*"}) {
    for (size_t at; (at = pattern.find(any)) != std::string::npos;) {
      pattern.replace(at, any.size(), "x");
    }
  }
  return "/home/user/project/" + pattern;
}

TEST(SecretPathTest, HasThePatternsOfTheRulesAboutCredentials) {
  size_t count = 0;
  for (const char* id :
       {"txfs-env-files", "txfs-env-kept", "txfs-untracked-kept",
        "txfs-credentials", "txfs-credentials-kept", "txfs-keys",
        "txfs-keys-kept"}) {
    const auto patterns = PatternsOf(id);
    EXPECT_FALSE(patterns.empty()) << id;
    for (const std::string& pattern : patterns) {
      EXPECT_TRUE(IsSecretPath(ExampleOf(pattern))) << id << ": " << pattern;
      ++count;
    }
  }
  EXPECT_GT(count, 50U);
}

TEST(SecretPathTest, TellsOtherFilesApart) {
  for (const char* path :
       {"/w/.npmrc", "/w/.ENV", "/w/credentials", "/w/a.kdbx", "/w/.env.ci",
        "/w/.kube/config", "/w/.ssh/known_hosts", "/w/.ssh", "/.netrc"}) {
    EXPECT_TRUE(IsSecretPath(path)) << path;
  }
  for (const char* path :
       {"/w/.env.example", "/w/.env.sample", "/w/.env.template", "/w/env",
        "/w/key.py", "/w/config.json", "/w/.config/gh", "/"}) {
    EXPECT_FALSE(IsSecretPath(path)) << path;
  }
}

}  // namespace
}  // namespace txfs::cli

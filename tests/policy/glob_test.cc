#include "policy/glob.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/policy/reference.h"

namespace txfs::policy {
namespace {

Glob Parsed(std::string_view pattern, bool nocase = false) {
  auto glob = Glob::Parse(pattern, nocase);
  EXPECT_TRUE(glob) << pattern;
  return glob ? std::move(*glob) : *Glob::Parse("never", false);
}

struct GlobCase {
  const char* pattern;
  const char* path;
  bool matches;
  bool nocase = false;
};

constexpr GlobCase kExamples[] = {
    {".env", ".env", true},
    {".env", "a/b/.env", true},
    {".env", "a/.envx", false},
    {".env", ".env/inside", false},
    {"*.pem", "x/y.pem", true},
    {"*", "a/b", true},
    {"/a", "a", true},
    {"/a", "b/a", false},
    {"a/b", "a/b", true},
    {"a/b", "c/a/b", false},
    {"**/a/b", "c/a/b", true},
    {"**/a/b", "a/b", true},
    {"x/**", "x", false},
    {"x/**", "x/y", true},
    {"x/**", "x/y/z", true},
    {"x/", "x", true},
    {"x/", "x/y", true},
    {"x/", "q/x/y", true},
    {"/x/", "q/x/y", false},
    {"a/**/b", "a/b", true},
    {"a/**/b", "a/x/y/b", true},
    {"a/**/b", "a/x/y/c", false},
    {"**", "a", true},
    {"**", "a/b", true},
    {"a?c", "abc", true},
    {"a?c", "a/c", false},
    {"[a-c]?", "b1", true},
    {"[!a-c]?", "b1", false},
    {"[]x]", "]", true},
    {"[a-]", "-", true},
    {"\\*", "*", true},
    {"\\*", "x", false},
    {"a*b*c", "aXbYc", true},
    {"a*b*c", "aXbY", false},
    {".ENV", "x/.env", true, true},
    {".env", "x/.ENV", true, true},
    {".env", "x/.ENV", false},
    {"[A-Z]*", "abc", true, true},
    {"\xff*", "\xff\xfe", true},
    {"a", "", false},
    {"**", "", false},
};

TEST(GlobTest, MatchesAsGitignoreDoes) {
  for (const GlobCase& one : kExamples) {
    EXPECT_EQ(Parsed(one.pattern, one.nocase).Matches(one.path), one.matches)
        << one.pattern << " " << one.path;
  }
}

TEST(GlobTest, KnowsWhereAMatchMayLie) {
  constexpr GlobCase kCases[] = {
      {".env", "a", true},
      {"/a/b", "a", true},
      {"/a/b", "c", false},
      {"/a/b", "a/b", false},
      {"/a/b/", "a/b", true},
      {"x/**", "x", true},
      {"**/.git/hooks/**", "s", true},
      {"/.git/hooks/**", "s", false},
      {"/.git/hooks/**", "", true},
      {"/.git/hooks/**", ".git/hooks/deep", true},
  };
  for (const GlobCase& one : kCases) {
    EXPECT_EQ(Parsed(one.pattern).MayMatchBelow(one.path), one.matches)
        << one.pattern << " " << one.path;
  }
}

TEST(GlobTest, NeedlesAreWhatEveryMatchHasInIt) {
  using Texts = std::vector<std::string>;
  const std::pair<const char*, Texts> cases[] = {
      {"**/.git/hooks/**", {"/.git/hooks/"}},
      {"a/*.pem", {"/a/", ".pem/"}},
      {"*.tfstate*", {".tfstate"}},
      {"x[0-9]*/**/y", {"/x", "/y/"}},
      {"[ab]c/d", {"c/d/"}},
      {"Makefile", {"/makefile/"}},
      {"\\*a?b", {"/*a", "b/"}},
      {"a/?*/b", {"/a/", "/b/"}},
      {"0123456789/0123456789/0123456789/",
       {"123456789/0123456789/0123456789/"}},
      {"**", {}},
      {"*", {}},
      {"?[a]", {}},
  };
  for (const auto& [pattern, needles] : cases) {
    EXPECT_EQ(Parsed(pattern).Needles(), needles) << pattern;
  }
}

TEST(GlobTest, RefusesWhatIsNoPattern) {
  for (const char* pattern : {"", "/", "[a", "a\\", "a//b", "a//", "/a//", "[]",
                              "[!]", "./x", "a/../b", ".", "!x", "[^a]",
                              "[[:alpha:]]", "[a\\]]", "[z-a]", "[\xc3\xa9]"}) {
    const auto glob = Glob::Parse(pattern, false);
    ASSERT_FALSE(glob) << pattern;
    EXPECT_EQ(glob.error().code, EINVAL);
    EXPECT_NE(glob.error().message.find(pattern), std::string::npos);
  }
  std::string deep = "a";
  for (int i = 0; i < 62; ++i) deep += "/a";
  EXPECT_FALSE(Glob::Parse(deep, false));
}

std::string Joined(const std::vector<std::string>& parts) {
  std::string joined;
  for (const std::string& part : parts) {
    joined += (joined.empty() ? "" : "/") + part;
  }
  return joined;
}

/// One to three of `letters`, with their own weights.
rc::Gen<std::string> Names(const std::string& letters) {
  return rc::gen::resize(3, rc::gen::nonEmpty(rc::gen::container<std::string>(
                                rc::gen::elementOf(letters))));
}

TEST(GlobPropertyTest, IsWhatTheDefinitionSays) {
  const auto parts = rc::gen::resize(
      4, rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
             rc::gen::oneOf(Names("ab"), Names("abA*?"),
                            rc::gen::just(std::string("[!a]*")),
                            rc::gen::just(std::string("**"))))));
  const auto names = rc::gen::resize(
      4, rc::gen::nonEmpty(
             rc::gen::container<std::vector<std::string>>(Names("abA"))));
  EXPECT_TRUE(rc::check("matches", [&] {
    const std::string pattern = (*rc::gen::arbitrary<bool>() ? "/" : "") +
                                Joined(*parts) +
                                (*rc::gen::arbitrary<bool>() ? "/" : "");
    const std::string path = Joined(*names);
    const bool nocase = *rc::gen::arbitrary<bool>();
    const auto glob = Glob::Parse(pattern, nocase);
    RC_ASSERT(glob.has_value());
    RC_LOG() << pattern << " " << path << std::endl;
    RC_ASSERT(glob->Matches(path) ==
              testing::ReferenceMatches(pattern, nocase, path));
    // What matches is never ruled out by what is above it.
    if (!glob->Matches(path)) return;
    for (size_t slash = path.rfind('/'); slash != std::string::npos;
         slash = slash == 0 ? std::string::npos : path.rfind('/', slash - 1)) {
      RC_ASSERT(glob->MayMatchBelow(path.substr(0, slash)));
    }
    RC_ASSERT(glob->MayMatchBelow(""));
  }));
}

TEST(GlobTest, TheDefinitionAgreesWithTheExamples) {
  for (const GlobCase& one : kExamples) {
    EXPECT_EQ(testing::ReferenceMatches(one.pattern, one.nocase, one.path),
              one.matches)
        << one.pattern << " " << one.path;
  }
}

}  // namespace
}  // namespace txfs::policy

#include "policy/glob.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

namespace txfs::policy {
namespace {

Glob Parsed(std::string_view pattern, bool nocase = false) {
  auto glob = Glob::Parse(pattern, nocase);
  EXPECT_TRUE(glob) << pattern;
  return glob ? std::move(*glob) : *Glob::Parse("never", false);
}

struct Case {
  const char* pattern;
  const char* path;
  bool matches;
  bool nocase = false;
};

TEST(GlobTest, MatchesAsGitignoreDoes) {
  constexpr Case kCases[] = {
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
  for (const Case& one : kCases) {
    EXPECT_EQ(Parsed(one.pattern, one.nocase).Matches(one.path), one.matches)
        << one.pattern << " " << one.path;
  }
}

TEST(GlobTest, KnowsWhereAMatchMayLie) {
  constexpr Case kCases[] = {
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
  for (const Case& one : kCases) {
    EXPECT_EQ(Parsed(one.pattern).MayMatchBelow(one.path), one.matches)
        << one.pattern << " " << one.path;
  }
}

TEST(GlobTest, KeysAreNamesThatEveryMatchHas) {
  EXPECT_EQ(Parsed("**/.git/hooks/**").Key(), "hooks");
  EXPECT_EQ(Parsed("a/*.c").Key(), "a");
  EXPECT_EQ(Parsed("*.c").Key(), "");
  EXPECT_EQ(Parsed("Makefile", true).Key(), "makefile");
}

TEST(GlobTest, RefusesWhatIsNoPattern) {
  for (const char* pattern :
       {"", "/", "[a", "a\\", "a//b", "[]", "[!]", "./x", "a/../b", ".", "!x",
        "[^a]", "[[:alpha:]]", "[a\\]]", "[z-a]", "[\xc3\xa9]"}) {
    const auto glob = Glob::Parse(pattern, false);
    ASSERT_FALSE(glob) << pattern;
    EXPECT_EQ(glob.error().code, EINVAL);
    EXPECT_NE(glob.error().message.find(pattern), std::string::npos);
  }
  std::string deep = "a";
  for (int i = 0; i < 62; ++i) deep += "/a";
  EXPECT_FALSE(Glob::Parse(deep, false));
}

/// A slow matcher, written from the definition.
class Reference {
 public:
  static bool Matches(const std::string& pattern, const std::string& path) {
    std::string rest = pattern;
    const bool below = rest.ends_with('/');
    if (below) rest.pop_back();
    const bool anchored = rest.find('/') != std::string::npos;
    std::vector<std::string> parts = Split(rest);
    if (!parts.empty() && parts.front().empty()) parts.erase(parts.begin());
    if (!anchored) parts.insert(parts.begin(), "**");
    std::vector<std::string> names = Split(path);
    for (; !names.empty(); names.pop_back()) {
      if (Parts(parts, 0, names, 0)) return true;
      if (!below) return false;
    }
    return false;
  }

 private:
  static std::vector<std::string> Split(const std::string& text) {
    std::vector<std::string> parts(1);
    for (const char c : text) {
      if (c == '/') {
        parts.emplace_back();
      } else {
        parts.back() += c;
      }
    }
    return parts;
  }
  static bool Parts(const std::vector<std::string>& parts, size_t part,
                    const std::vector<std::string>& names, size_t name) {
    if (part == parts.size()) return name == names.size();
    if (parts[part] == "**") {
      // At the end it is one at least.
      const size_t least = part + 1 == parts.size() ? name + 1 : name;
      for (size_t to = least; to <= names.size(); ++to) {
        if (Parts(parts, part + 1, names, to)) return true;
      }
      return false;
    }
    return name < names.size() && Name(parts[part], 0, names[name], 0) &&
           Parts(parts, part + 1, names, name + 1);
  }
  static bool Name(const std::string& pattern, size_t at,
                   const std::string& name, size_t in) {
    if (at == pattern.size()) return in == name.size();
    if (pattern[at] == '*') {
      for (size_t to = in; to <= name.size(); ++to) {
        if (Name(pattern, at + 1, name, to)) return true;
      }
      return false;
    }
    return in < name.size() &&
           (pattern[at] == '?' || pattern[at] == name[in]) &&
           Name(pattern, at + 1, name, in + 1);
  }
};

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
             rc::gen::oneOf(Names("ab"), Names("ab*?"),
                            rc::gen::just(std::string("**"))))));
  const auto names = rc::gen::resize(
      4, rc::gen::nonEmpty(
             rc::gen::container<std::vector<std::string>>(Names("ab"))));
  EXPECT_TRUE(rc::check("matches", [&] {
    const std::vector<std::string> some = *parts;
    std::vector<std::string> clean;
    for (const std::string& part : some) {
      const bool repeats =
          part == "**" && !clean.empty() && clean.back() == part;
      if (!repeats) clean.push_back(part);
    }
    const std::string pattern = (*rc::gen::arbitrary<bool>() ? "/" : "") +
                                Joined(clean) +
                                (*rc::gen::arbitrary<bool>() ? "/" : "");
    const std::string path = Joined(*names);
    const auto glob = Glob::Parse(pattern, false);
    RC_ASSERT(glob.has_value());
    RC_LOG() << pattern << " " << path << std::endl;
    RC_ASSERT(glob->Matches(path) == Reference::Matches(pattern, path));
    // What matches is never ruled out by what is above it.
    if (!glob->Matches(path)) return;
    for (size_t slash = path.rfind('/'); slash != std::string::npos;
         slash = slash == 0 ? std::string::npos : path.rfind('/', slash - 1)) {
      RC_ASSERT(glob->MayMatchBelow(path.substr(0, slash)));
    }
    RC_ASSERT(glob->MayMatchBelow(""));
  }));
}

}  // namespace
}  // namespace txfs::policy

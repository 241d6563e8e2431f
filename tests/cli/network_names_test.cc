#include "cli/run/network_names.h"

#include <gtest/gtest.h>
#include <regex.h>

#include <string>
#include <vector>

namespace txfs::cli {
namespace {

std::string Parsed(std::string_view text) {
  const auto name = ParseHostName(text);
  return name ? *name : "error";
}

/// As a proxy does it. `flags`: REG_EXTENDED or 0.
bool IsMatch(std::string_view name, const std::string& host, int flags) {
  regex_t compiled{};
  EXPECT_EQ(::regcomp(&compiled, HostPattern(name).c_str(),
                      REG_NOSUB | REG_ICASE | REG_NEWLINE | flags),
            0);
  const bool is_match = ::regexec(&compiled, host.c_str(), 0, nullptr, 0) == 0;
  ::regfree(&compiled);
  return is_match;
}

TEST(NetworkNames, NamesAreBroughtIntoOneForm) {
  EXPECT_EQ(Parsed("api.example.org"), "api.example.org");
  EXPECT_EQ(Parsed("API.Example.ORG."), "api.example.org");
  EXPECT_EQ(Parsed("*.Example.org"), "*.example.org");
  EXPECT_EQ(Parsed("localhost"), "localhost");
  EXPECT_EQ(Parsed("xn--bcher-kva.test"), "xn--bcher-kva.test");
  EXPECT_EQ(Parsed("_service.a-b.test"), "_service.a-b.test");
  EXPECT_EQ(Parsed("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(Parsed("1.test"), "1.test");
  EXPECT_EQ(Parsed(std::string(63, 'a') + ".test"),
            std::string(63, 'a') + ".test");
}

TEST(NetworkNames, WhatIsNoNameIsRefused) {
  std::string long_name;
  while (long_name.size() <= 253) long_name += "a.";
  const std::vector<std::string> bad = {"",
                                        ".",
                                        "*",
                                        "*.",
                                        "*.*",
                                        "*.*.test",
                                        "a.*",
                                        "a*.test",
                                        "a..test",
                                        ".test",
                                        "a.test..",
                                        "-a.test",
                                        "a-.test",
                                        "a b",
                                        "a\nb",
                                        "a.test\n",
                                        "a;b",
                                        "a|b",
                                        "a\\.b",
                                        "a[b].test",
                                        "(a).test",
                                        "^a",
                                        "a$",
                                        "a#b",
                                        "a?b",
                                        "a+.test",
                                        "a:80",
                                        "a/b",
                                        "user@a",
                                        "http://a",
                                        "b\xc3\xbc",
                                        "10.1",
                                        "10.0.0.1.2",
                                        "256.1.1.1",
                                        "010.0.0.1",
                                        "0x7f.1",
                                        "0x7f000001",
                                        "2130706433",
                                        "*.1",
                                        "*.0.0.1",
                                        "::1",
                                        "[::1]",
                                        long_name + "test",
                                        std::string(64, 'a') + ".test",
                                        std::string("a\0b", 3)};
  for (const std::string& text : bad) {
    EXPECT_EQ(Parsed(text), "error") << text;
  }
}

TEST(NetworkNames, PatternsMatchWhatTheNameMeans) {
  for (const int flags : {0, REG_EXTENDED}) {
    EXPECT_TRUE(IsMatch("api.test", "api.test", flags));
    EXPECT_TRUE(IsMatch("api.test", "API.Test.", flags));
    EXPECT_FALSE(IsMatch("api.test", "apixtest", flags));
    EXPECT_FALSE(IsMatch("api.test", "an.api.test", flags));
    EXPECT_FALSE(IsMatch("api.test", "api.test.org", flags));
    EXPECT_FALSE(IsMatch("api.test", "", flags));
    EXPECT_TRUE(IsMatch("*.test", "a.test", flags));
    EXPECT_TRUE(IsMatch("*.test", "b.a.test.", flags));
    EXPECT_FALSE(IsMatch("*.test", "test", flags));
    EXPECT_FALSE(IsMatch("*.test", ".test", flags));
    EXPECT_FALSE(IsMatch("*.test", "atest", flags));
    EXPECT_FALSE(IsMatch("*.test", "evil.org/.test", flags));
    EXPECT_FALSE(IsMatch("*.test", "evil.org#.test", flags));
    EXPECT_TRUE(IsMatch("10.0.0.1", "10.0.0.1", flags));
    EXPECT_FALSE(IsMatch("10.0.0.1", "10.0.0.10", flags));
  }
}

TEST(NetworkNames, ThePatternOfTheLongestNameFitsIntoTheProxysLine) {
  std::string name = "*.";
  while (name.size() + 2 <= 253) name += "a.";
  name += "a";
  ASSERT_EQ(Parsed(name), name);
  EXPECT_LT(HostPattern(name).size(), 510U);
}

TEST(NetworkNames, AListHasTheNamesOfTheProfileToo) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(ParseNetwork("b.test,a.test", {"c.test"}).value(),
            (Names{"a.test", "b.test", "c.test"}));
  EXPECT_EQ(ParseNetwork("profile", {"c.test"}).value(), Names{"c.test"});
  EXPECT_EQ(ParseNetwork("a.test,A.test.", {}).value(), Names{"a.test"});
  for (const char* bad : {"profile", "", ",", "a,", ",a", "host,a", "a,none"}) {
    EXPECT_FALSE(ParseNetwork(bad, {})) << bad;
  }
}

TEST(NetworkNames, AProxyOfTheCallersIsOnTheWay) {
  const std::vector<std::string> names = {"*.c.test", "a.b.test", "b.test",
                                          "localhost"};
  const std::string proxy = "Upstream http proxy.test:8080\n";
  EXPECT_EQ(UpstreamLines(names, "http://proxy.test:8080/", "").value(), proxy);
  EXPECT_EQ(UpstreamLines(names, "Proxy.test:8080", "d.test,, test2").value(),
            proxy);
  EXPECT_EQ(UpstreamLines(names, "http://proxy.test:8080", "localhost, .b.test")
                .value(),
            proxy +
                "Upstream none \"a.b.test\"\nUpstream none \"b.test\"\n"
                "Upstream none \"localhost\"\n");
  EXPECT_EQ(
      UpstreamLines(names, "http://proxy.test:8080", "*.c.test,est").value(),
      proxy + "Upstream none \".c.test\"\n");
  for (const char* bad : {"https://a:1", "socks5://a:1", "http://u:p@a:1",
                          "http://a", "a:", "a:0", "a:65536", "a:1\nb", "a b:1",
                          "*.a:1", ":1", "http://a:1/b"}) {
    EXPECT_FALSE(UpstreamLines(names, bad, "")) << bad;
  }
}

}  // namespace
}  // namespace txfs::cli

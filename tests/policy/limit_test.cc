#include "policy/limit.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "policy/load.h"
#include "policy/sources.h"

namespace txfs::policy {
namespace {

constexpr const char* kHead = "schema = 1\n[[limit]]\nid = \"one\"\n";
constexpr const char* kTexts = "reason = \"r\"\nsuggest = \"s\"\n";

Result<Loaded> LoadLimit(const std::string& lines) {
  return Load(kHead + lines + "\n" + kTexts, "p.toml");
}

Limit LimitOf(const std::string& lines) {
  auto loaded = LoadLimit(lines);
  EXPECT_TRUE(loaded) << loaded.error().ToString();
  if (!loaded) return {};
  EXPECT_EQ(loaded->limits.size(), 1U);
  return std::move(loaded->limits.front());
}

TEST(LimitTest, IsReadWithAllThatItCanSay) {
  const Limit limit = LimitOf(R"(of = "base_removed"
max = 500
fraction = 0.25
path = ["src/", "*.md"]
unless = { path = "node_modules/" }
window = 10
action = "audit"
errno = "EPERM")");
  EXPECT_EQ(limit.id, "one");
  EXPECT_EQ(limit.of, Measure::kBaseRemoved);
  EXPECT_EQ(limit.max, 500U);
  EXPECT_EQ(limit.fraction, 0.25);
  EXPECT_EQ(limit.window, 10U);
  EXPECT_FALSE(limit.at_commit);
  EXPECT_EQ(limit.action, Action::kAudit);
  EXPECT_EQ(limit.error, EPERM);
  EXPECT_EQ(limit.reason, "r");
  EXPECT_EQ(limit.suggest, "s");
  EXPECT_EQ(limit.place.ToString(), "p.toml:2");
  EXPECT_TRUE(limit.Counts("src/a"));
  EXPECT_TRUE(limit.Counts("doc/a.md"));
  EXPECT_FALSE(limit.Counts("doc/a"));
  EXPECT_FALSE(limit.Counts("src/node_modules/a"));
}

TEST(LimitTest, DeniesTheOperationUnlessItSaysOtherwise) {
  const Limit limit = LimitOf("of = \"inodes_made\"\nmax = 0");
  EXPECT_EQ(limit.action, Action::kDeny);
  EXPECT_EQ(limit.error, EDQUOT);
  EXPECT_FALSE(limit.at_commit);
  EXPECT_FALSE(limit.window);
  EXPECT_FALSE(limit.fraction);
}

TEST(LimitTest, BytesMayHaveAUnit) {
  struct Case {
    const char* text;
    uint64_t bytes;
  };
  constexpr Case kCases[] = {{"4096", 4096},
                             {"\"1 KiB\"", 1024},
                             {"\"3MiB\"", 3 << 20},
                             {"\"10 GiB\"", uint64_t{10} << 30},
                             {"\"2 TiB\"", uint64_t{2} << 40}};
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.text);
    const Limit limit =
        LimitOf("of = \"bytes_written\"\nmax = " + std::string(one.text));
    EXPECT_EQ(limit.max, one.bytes);
  }
}

TEST(LimitTest, ErrorsSayWhereAndWhatIsExpected) {
  struct Case {
    const char* lines;
    const char* message;
  };
  constexpr Case kCases[] = {
      {"of = \"files\"\nmax = 1",
       "p.toml:4: of of [[limit]] is \"files\"; expected base_removed, "
       "bytes_written, inodes_made"},
      {"max = 1", "p.toml:2: of of [[limit]] is missing or empty"},
      {"of = \"inodes_made\"", "p.toml:2: max of [[limit]] is missing"},
      {"of = \"inodes_made\"\nmax = \"1 KiB\"",
       "p.toml:5: max of [[limit]] is not a number; expected a whole number"},
      {"of = \"inodes_made\"\nmax = -1", "p.toml:5: max of [[limit]]"},
      {"of = \"bytes_written\"\nmax = \"1 GB\"",
       "p.toml:5: max of [[limit]] is not a number of bytes; expected a whole "
       "number, or one with a unit, such as \"10 GiB\""},
      {"of = \"bytes_written\"\nmax = \"99999999 TiB\"", "p.toml:5: max"},
      {"of = \"bytes_written\"\nmax = \"GiB\"", "p.toml:5: max"},
      {"of = \"bytes_written\"\nfraction = 0.5",
       "p.toml:5: fraction of [[limit]] is set for bytes_written; expected "
       "fraction for base_removed only"},
      {"of = \"base_removed\"\nfraction = 1.5",
       "p.toml:5: fraction of [[limit]] is out of range; expected a "
       "number between 0.0 and 1.0"},
      {"of = \"base_removed\"\nfraction = nan", "p.toml:5: fraction"},
      {"of = \"base_removed\"\nmax = 1\nat = \"end\"",
       "p.toml:6: at of [[limit]] is \"end\"; expected operation or commit"},
      {"of = \"base_removed\"\nmax = 1\nat = \"commit\"\nwindow = 5",
       "p.toml:7: window of [[limit]] is given, but at is \"commit\"; expected "
       "no window"},
      {"of = \"base_removed\"\nmax = 1\nwindow = 0",
       "p.toml:6: window of [[limit]] is not a valid number of seconds; "
       "expected a whole number from 1 to 3600"},
      {"of = \"base_removed\"\nmax = 1\nwindow = 0.5", "p.toml:6: window"},
      {"of = \"base_removed\"\nmax = 1\nwindow = 3601", "p.toml:6: window"},
      {"of = \"base_removed\"\nmax = 1\naction = \"allow\"",
       "p.toml:6: action of [[limit]] is \"allow\"; expected deny or audit"},
      {"of = \"base_removed\"\nmax = 1\nerrno = \"EIO\"", "p.toml:6: errno"},
      {"of = \"base_removed\"\nmax = 1\npath = \"[\"", "p.toml:6: path"},
      {"of = \"inodes_made\"\nmax = 1\npath = \"a\"",
       "p.toml:6: path of [[limit]] is set for inodes_made; expected paths "
       "for base_removed only"},
      {"of = \"base_removed\"\nmax = 1\nunless = { exe = \"git\" }",
       "p.toml:6: unknown key \"exe\" in unless of [[limit]]; expected one of "
       "path"},
      {"of = \"base_removed\"\nmax = 1\nunless = {}",
       "p.toml:6: unless of [[limit]] is empty"},
      {"of = \"base_removed\"\nmax = 1\nunless = 3", "p.toml:6: unless"},
      {"of = \"base_removed\"\nmax = 1\nops = \"unlink\"",
       "p.toml:6: unknown key \"ops\" in [[limit]]"},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.lines);
    const auto loaded = LoadLimit(one.lines);
    ASSERT_FALSE(loaded);
    EXPECT_EQ(loaded.error().code, EINVAL);
    EXPECT_TRUE(loaded.error().message.starts_with(one.message))
        << loaded.error().message;
  }
}

TEST(LimitTest, HasAReasonAndAnIdOfItsOwn) {
  const std::string first =
      std::string(kHead) + "of = \"inodes_made\"\nmax = 1\n";
  const auto silent = Load(first + "suggest = \"s\"\n", "p.toml");
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().message,
            "p.toml:2: reason of [[limit]] is missing or empty; expected text");
  const std::string rule =
      "[[fs]]\nid = \"one\"\npath = \"a\"\n" + std::string(kTexts);
  const auto taken = Load(first + kTexts + rule, "p.toml");
  ASSERT_FALSE(taken);
  EXPECT_TRUE(
      taken.error().message.contains("id of [[limit]] \"one\" is already used"))
      << taken.error().message;
}

TEST(LimitTest, AnIdIsUniqueOverRulesAndLimitsOfAllFiles) {
  const std::string limit =
      std::string(kHead) + "of = \"inodes_made\"\nmax = 1\n" + kTexts;
  const std::string rule =
      "schema = 1\n[[fs]]\nid = \"one\"\npath = \"a\"\n" + std::string(kTexts);
  const auto both = Compile({{"a.toml", rule}, {"b.toml", limit}});
  ASSERT_FALSE(both);
  EXPECT_EQ(both.error().message,
            "b.toml:2: id \"one\" is already used in a.toml:2; expected an "
            "id that no other rule has");
  const auto one = Compile({{"b.toml", limit}});
  ASSERT_TRUE(one) << one.error().ToString();
  EXPECT_EQ((*one)->limits().size(), 1U);
}

TEST(LimitTest, IsExceededByMoreThanItAllows) {
  struct Case {
    std::optional<uint64_t> max;
    std::optional<double> fraction;
    uint64_t count, total;
    bool exceeded;
  };
  constexpr Case kCases[] = {
      {10, {}, 10, 0, false},   {10, {}, 11, 0, true},
      {0, {}, 0, 0, false},     {0, {}, 1, 0, true},
      {{}, 0.5, 5, 10, false},  {{}, 0.5, 6, 10, true},
      {10, 0.5, 11, 22, false}, {10, 0.5, 12, 22, true},
      {10, 0.5, 9, 10, false},  {10, 0.5, 10, 10, false},
      {10, 0.5, 11, 10, true},
  };
  for (const Case& one : kCases) {
    SCOPED_TRACE(std::to_string(one.count) + "/" + std::to_string(one.total));
    Limit limit;
    limit.max = one.max;
    limit.fraction = one.fraction;
    EXPECT_EQ(Exceeds(limit, one.count, one.total), one.exceeded);
  }
}

TEST(LimitTest, TheTotalMattersOnlyBeyondTheNumber) {
  Limit limit;
  limit.max = 10;
  EXPECT_FALSE(NeedsTotal(limit, 11));
  limit.fraction = 0.5;
  EXPECT_FALSE(NeedsTotal(limit, 10));
  EXPECT_TRUE(NeedsTotal(limit, 11));
  limit.max.reset();
  EXPECT_TRUE(NeedsTotal(limit, 1));
}

TEST(LimitTest, SaysWhatItAllows) {
  Limit limit;
  limit.max = 500;
  EXPECT_EQ(AllowanceOf(limit), "500");
  limit.fraction = 0.3;
  EXPECT_EQ(AllowanceOf(limit), "500, or 30 % of them where that is more");
  limit.max.reset();
  EXPECT_EQ(AllowanceOf(limit), "30 % of them");
  limit = {.of = Measure::kBytesWritten, .max = uint64_t{10} << 30};
  EXPECT_EQ(AllowanceOf(limit), "10 GiB");
  limit.max = 1500;
  EXPECT_EQ(AllowanceOf(limit), "1500 bytes");
}

TEST(WindowTest, ForgetsWhatIsOlder) {
  Window window(10);
  window.Add(100'000, 3);
  window.Add(104'000, 4);
  EXPECT_EQ(window.SumAt(104'000), 7U);
  EXPECT_EQ(window.SumAt(110'000), 7U);
  EXPECT_EQ(window.SumAt(111'000), 4U);
  EXPECT_EQ(window.SumAt(114'999), 4U);
  EXPECT_EQ(window.SumAt(115'000), 0U);
}

TEST(WindowTest, AClockThatStandsStillOrLeapsDoesNoHarm) {
  Window window(1);
  window.Add(5000, 1);
  window.Add(4000, 1);
  EXPECT_EQ(window.SumAt(5000), 2U);
  EXPECT_EQ(window.SumAt(uint64_t{1} << 60), 0U);
  window.Add(uint64_t{1} << 60, 5);
  EXPECT_EQ(window.SumAt(uint64_t{1} << 60), 5U);
}

}  // namespace
}  // namespace txfs::policy

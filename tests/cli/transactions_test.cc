#include "cli/locate/transactions.h"

#include <fcntl.h>
#include <gtest/gtest.h>

namespace txfs::cli {
namespace {

ServedTransaction Open(const std::string& id, const std::string& name) {
  ServedTransaction transaction;
  transaction.summary.id = id;
  transaction.summary.name = name;
  return transaction;
}

const std::vector<ServedTransaction> kNamed = {Open("01a100000001", "a"),
                                               Open("01a100000002", "b"),
                                               Open("02b200000003", "01a")};

/// The id that is chosen, or the kind of error.
std::string Choose(const std::vector<ServedTransaction>& open,
                   const std::optional<std::string>& wanted) {
  const auto chosen = ChooseTransaction(open, wanted, "/w");
  if (chosen) return chosen->summary.id;
  EXPECT_FALSE(chosen.error().hint.empty());
  return chosen.error().kind == ErrorKind::kUsage ? "usage" : "failed";
}

TEST(ChooseTransactionTest, TakesNamesIdsAndBeginningsOfOneId) {
  EXPECT_EQ(Choose(kNamed, "a"), "01a100000001");
  EXPECT_EQ(Choose(kNamed, "01a100000002"), "01a100000002");
  EXPECT_EQ(Choose(kNamed, "02"), "02b200000003");
  EXPECT_EQ(Choose(kNamed, "01a1"), "usage");
  EXPECT_EQ(Choose(kNamed, "3"), "failed");
  EXPECT_EQ(Choose(kNamed, ""), "usage");
  EXPECT_EQ(Choose({}, "a"), "failed");
}

TEST(ChooseTransactionTest, PrefersANameToTheBeginningOfAnId) {
  EXPECT_EQ(Choose(kNamed, "01a"), "02b200000003");
}

TEST(ChooseTransactionTest, WithoutAChoiceTakesTheOnlyOneOrTheUnnamed) {
  EXPECT_EQ(Choose({kNamed[1]}, {}), "01a100000002");
  EXPECT_EQ(Choose({kNamed[0], kNamed[1], Open("03", "")}, {}), "03");
  EXPECT_EQ(Choose(kNamed, {}), "usage");
  EXPECT_EQ(Choose({}, {}), "failed");
}

TEST(ChooseTransactionTest, NamesTheCandidates) {
  const auto chosen = ChooseTransaction(kNamed, {}, "/w");
  ASSERT_FALSE(chosen);
  EXPECT_NE(chosen.error().message.find("a (01a100000001), b (01a100000002)"),
            std::string::npos)
      << chosen.error().message;
  EXPECT_NE(chosen.error().hint.find("-t a"), std::string::npos);
}

TEST(TransactionNameTest, IsOfPlainCharactersAndNoId) {
  const std::string longest(64, 'x');
  for (const std::string& name :
       {std::string("a"), std::string("A.b_c-9"), std::string("0123456789a"),
        std::string("0123456789AB"), longest}) {
    EXPECT_TRUE(CheckTransactionName(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string("-a"), std::string("a b"),
        std::string("a/b"), std::string("\xC3\xA4"), std::string("a\0b", 3),
        std::string("0123456789ab"), longest + "x"}) {
    const Status checked = CheckTransactionName(name);
    ASSERT_FALSE(checked) << name;
    EXPECT_EQ(checked.error().kind, ErrorKind::kUsage);
    EXPECT_FALSE(checked.error().hint.empty());
  }
}

}  // namespace
}  // namespace txfs::cli

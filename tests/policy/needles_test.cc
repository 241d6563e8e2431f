#include "policy/needles.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "policy/ascii.h"

namespace txfs::policy {
namespace {

using Texts = std::vector<std::string>;

Texts In(std::string_view path, const Texts& texts) {
  Texts found;
  Needles(texts).ForEachIn(path,
                           [&](uint32_t i) { found.push_back(texts.at(i)); });
  std::ranges::sort(found);
  return found;
}

TEST(NeedlesTest, FindsEachTextOnceWhereverItStands) {
  const Texts texts{"/a/", ".pem/", "pe", "e", "x/y", "\xff"};
  EXPECT_EQ(In("a", texts), (Texts{"/a/"}));
  EXPECT_EQ(In("b/c.pem", texts), (Texts{".pem/", "e", "pe"}));
  EXPECT_EQ(In("b/C.PEM", texts), (Texts{".pem/", "e", "pe"}));
  EXPECT_EQ(In("peep", texts), (Texts{"e", "pe"}));
  EXPECT_EQ(In("x/y\xff", texts), (Texts{"x/y", "\xff"}));
  EXPECT_EQ(In("c.pemx", {".pem/"}), Texts());
  EXPECT_EQ(In("", texts), Texts());
  EXPECT_EQ(In("a", {}), Texts());
}

TEST(NeedlesPropertyTest, FindsWhatIsThere) {
  const auto text = [](const char* letters) {
    return rc::gen::container<std::string>(
        rc::gen::elementOf(std::string(letters)));
  };
  EXPECT_TRUE(rc::check("finds", [&] {
    const auto some = *rc::gen::container<std::set<std::string>>(
        rc::gen::nonEmpty(rc::gen::resize(5, text("ab/."))));
    const Texts texts(some.begin(), some.end());
    const std::string path = *text("abAB/.z");
    std::string framed = "/" + path + "/";
    std::ranges::transform(framed, framed.begin(), ToLower);
    Texts there;
    std::ranges::copy_if(texts, std::back_inserter(there),
                         [&](const auto& one) { return framed.contains(one); });
    RC_ASSERT(In(path, texts) == there);
  }));
}

}  // namespace
}  // namespace txfs::policy

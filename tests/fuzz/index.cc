// The index of a git repository that somebody else wrote: it is read within its
// bounds, and one that ends within its entries is not plain.

#include "cli/hook/git_index.h"
#include "tests/fuzz/fuzz.h"

namespace {

using txfs::cli::IsPlainIndex;
using txfs::fuzz::Demand;

constexpr size_t kCount = 8, kHeader = 12, kFixed = 62;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view index = txfs::fuzz::TextOf(data, size);
  if (!IsPlainIndex(index) || index.empty()) return 0;
  Demand(index.starts_with("DIRC"), "what is plain is an index");
  const bool has_entries =
      index.substr(kCount, kHeader - kCount).find_first_not_of('\0') !=
      std::string_view::npos;
  if (!has_entries) return 0;
  for (size_t end = kHeader; end <= kHeader + kFixed; ++end) {
    Demand(!IsPlainIndex(index.substr(0, end)), "a cut index is not plain");
  }
  return 0;
}

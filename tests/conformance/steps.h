#pragma once

#include <rapidcheck.h>

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/temp_dir.h"
#include "tests/repeat.h"

namespace txfs::testing {

/// rapidcheck's size: how large the numbers in a step get.
inline constexpr int kStepSize = 50;
/// Times of the base and of utimens steps are before this; "now" is after.
inline constexpr int64_t kBeforeNow = 1'300'000'000;

enum class StepKind : uint8_t {
  kCreate,
  kOverwrite,
  kPatch,
  kAppend,
  kTruncate,
  kMkdir,
  kRmdir,
  kUnlink,
  kRename,
  kRenameNoReplace,
  kExchange,
  kLink,
  kSymlink,
  kMkfifo,
  kChmod,
  kUtimens,
  kSetXattr,
  kRemoveXattr,
  kAllocate,
  kCopyRange,
  kRemoveTree,
  kRead,
  kList,
  kStat,
  kHold,
  kHeldWrite,
  kHeldRead,
  kHeldTruncate,
  kDrop,
  kCount,
};

/// One random operation: what it does depends on nothing but these and the
/// tree.
struct Step {
  StepKind kind = StepKind::kCreate;
  std::string path, other;
  uint32_t offset = 0;
  uint32_t length = 0;
  uint8_t choice = 0;  ///< fill byte, flags, target, ...
  mode_t mode = 0644;
};
std::ostream& operator<<(std::ostream& out, const Step& step);

/// The modes for steps, such that drivers agree about who may do what. For root
/// any will do. An ordinary user is told EACCES by the kernel, but not by the
/// core: `kernel` says whether the kernel stands in front of all drivers. What
/// he may not read himself no driver can compare: his may all be read.
std::vector<mode_t> StepModes(bool kernel);

/// Short paths over few names, so that steps meet each other and what
/// PrepareBase made.
rc::Gen<Step> AnyStep(const std::vector<mode_t>& modes);

/// A base with subdirectories, hard links, symlinks, a FIFO and a file of some
/// size, at paths that steps use.
void PrepareBase(BaseTree& base);

/// Does steps on one driver and says what came out, in words that must be the
/// same for any other.
class StepRunner {
 public:
  explicit StepRunner(Driver& driver) : driver_(driver) {}

  /// "OK ..." or the name of the errno.
  std::string Run(const Step& step);
  /// Closes what steps hold open.
  void DropAll();

 private:
  static constexpr size_t kSlots = 2;

  Result<std::string> Do(const Step& step);
  Result<std::string> Look(const Step& step);
  Result<std::string> DoHeld(const Step& step);
  Status Mutate(const Step& step);
  Status MutateContent(const Step& step);
  Status AllocateRange(const Step& step);
  Status Copy(const Step& step);

  Driver& driver_;
  std::array<std::optional<Handle>, kSlots> held_;
};

/// How many cases rapidcheck tries, of sequences of up to `max_size` steps.
/// Before it is first used, when it reads its parameters from RC_PARAMS; a seed
/// given there stays; else it is that of $TXFS_TEST_SEED.
void SetCases(int cases, int max_size = 80);

}  // namespace txfs::testing

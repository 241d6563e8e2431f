#include "fs/workspace/savepoints.h"

#include <algorithm>

#include "fs/workspace/calls.h"

namespace txfs {
namespace {

constexpr size_t kMaxSavepointName = 255;

bool IsTaken(const std::vector<Savepoint>& existing, const std::string& name) {
  return std::ranges::find(existing, name, &Savepoint::name) != existing.end();
}

}  // namespace

Result<std::string> NameSavepoint(const std::vector<Savepoint>& existing,
                                  const std::string& wanted) {
  if (wanted.size() > kMaxSavepointName) {
    return Fail(ErrorKind::kUsage, 0,
                "the name of a savepoint can have at most 255 bytes",
                "choose a shorter name");
  }
  const auto is_control = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == 0x7f;
  };
  if (std::ranges::any_of(wanted, is_control)) {
    return Fail(ErrorKind::kUsage, 0,
                "the name of a savepoint cannot have control characters",
                "leave out line breaks, tabs and other control characters");
  }
  if (CallNamed(wanted)) {
    return Fail(ErrorKind::kUsage, 0,
                "the savepoint names call-N and call-N-end are those of calls",
                "choose another name, or mark a call with `txfs savepoint "
                "--call ID`");
  }
  if (IsTaken(existing, wanted)) {
    return Fail(0, "savepoint \"" + wanted + "\" already exists",
                "choose another name, or `txfs rollback` to it");
  }
  if (!wanted.empty()) return wanted;
  for (size_t number = WithoutCalls(existing).size() + 1;; ++number) {
    const std::string name = "sp" + std::to_string(number);
    if (!IsTaken(existing, name)) return name;
  }
}

Result<Savepoint> FindSavepoint(const std::vector<Savepoint>& existing,
                                const std::string& name) {
  const auto found = std::ranges::find(existing, name, &Savepoint::name);
  if (!name.empty() && found != existing.end()) return *found;
  const std::vector<Savepoint> named = WithoutCalls(existing);
  if (named.empty()) {
    return Fail(0, "the transaction has no savepoint",
                "`txfs savepoint` makes one");
  }
  if (name.empty()) return named.back();
  std::string names;
  for (const Savepoint& savepoint : named) {
    names += (names.empty() ? "" : ", ") + savepoint.name;
  }
  return Fail(0, "there is no savepoint \"" + name + "\"",
              "the transaction has: " + names);
}

}  // namespace txfs

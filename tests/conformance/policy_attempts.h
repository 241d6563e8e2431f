#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"

namespace txfs::testing {

/// How somebody gets at what a rule protects; one bit each, for masks.
enum Reach : unsigned {
  kByName = 1,      ///< a file, by the name that the rule is about
  kByAnother = 2,   ///< the same file, by a name that no rule is about
  kBySymlink = 4,   ///< the same, by a symbolic link
  kOpenBefore = 8,  ///< the same, by what was open before there was a rule
  kNotThere = 16,   ///< a name that nothing has yet
  kDirectory = 32,  ///< an empty directory, by the name that the rule is about
  kAbove = 64,      ///< "top/kept/file", by moving what is above it
  kLink = 128,      ///< a symbolic link, by the name that the rule is about
};

/// What the record of an attempt must have for the name that was attempted.
inline constexpr char kThatName[] = "@";

/// An operation that changes something, on the name `path`. The files "free",
/// "dir/f" and "plain/f" and the empty directory "spare" may be used for it.
struct Attempt {
  std::string name;
  std::string op;  ///< as the log calls it
  unsigned reach = 0;
  /// Flags for opening `path`; -1: it is not opened for it.
  int open_flags = -1;
  /// `file` is `path` opened with `open_flags`.
  std::function<Status(Driver& fs, const std::string& path, Handle file)> run;
  std::string path = kThatName;  ///< in the record
  std::string new_path = {};     ///< in the record
};

/// All of them. Which of them can be done how is part of the table:
/// - A directory and what is not there have no content.
/// - Of a symbolic link its own name and attributes change, but where calls
///   follow it.
/// - A rename or an exchange of another name leaves the one that is meant.
/// - What was open before has no name.
std::vector<Attempt> AllAttempts();

}  // namespace txfs::testing

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/conformance/driver.h"
#include "tests/conformance/steps.h"

namespace txfs::testing {

/// Whether a step came out as one does whose mount has died.
bool IsDeath(const std::string& outcome);

/// Whether nobody serves the mount any more; asks in a way that no cache
/// answers.
bool IsGone(Driver& driver);

/// Whether a step is made of many operations, of which any number may have been
/// done when it is interrupted.
bool IsCompound(const Step& step);

/// Steps that one after the other lead through every state that a `step` that
/// was interrupted may have left, unless it was not begun. `before` has all
/// that was there. Requires that it is not compound.
std::vector<Step> Prefixes(const Step& step, Driver& before);

}  // namespace txfs::testing

#pragma once

#include <cstddef>
#include <functional>

namespace txfs {

/// Calls `visit` with each number below `count`; if they are many, on several
/// threads at once. Where no thread can be started, this one does all.
void InParallel(size_t count, const std::function<void(size_t)>& visit);

}  // namespace txfs

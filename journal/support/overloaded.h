#pragma once

namespace txfs {

/// Combines lambdas into one visitor for std::visit.
template <class... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};

}  // namespace txfs

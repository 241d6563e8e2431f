#pragma once

namespace txfs {

/// The lambdas as one, for std::visit.
template <class... Lambdas>
struct Overloaded : Lambdas... {
  using Lambdas::operator()...;
};

}  // namespace txfs

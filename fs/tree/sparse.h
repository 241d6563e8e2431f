#pragma once

#include <memory>

namespace txfs {

/// What few objects have: it takes a pointer until it is made.
template <typename T>
class Sparse {
 public:
  /// As constructed, if it was never made.
  [[nodiscard]] const T& operator*() const {
    static const T kNone{};
    return value_ ? *value_ : kNone;
  }
  [[nodiscard]] const T* operator->() const { return &**this; }
  /// nullptr: it was never made.
  [[nodiscard]] T* get() { return value_.get(); }
  [[nodiscard]] bool was_made() const { return value_ != nullptr; }
  T& Make() {
    if (!value_) value_ = std::make_unique<T>();
    return *value_;
  }
  void Reset() { value_.reset(); }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace txfs

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace txfs {

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

inline ByteSpan AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// Appends little-endian integers and length-prefixed byte strings to a buffer.
class Encoder {
 public:
  explicit Encoder(Bytes& out) : out_(out) {}

  template <class T>
    requires std::is_integral_v<T>
  void Put(T value) {
    static_assert(std::endian::native == std::endian::little);
    PutRaw({reinterpret_cast<const std::byte*>(&value), sizeof value});
  }
  /// A 32-bit length, then the bytes.
  void PutString(std::string_view text) {
    Put(static_cast<uint32_t>(text.size()));
    PutRaw(AsBytes(text));
  }
  void PutRaw(ByteSpan bytes) {
    out_.insert(out_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] size_t size() const { return out_.size(); }

 private:
  Bytes& out_;
};

/// Reads what Encoder wrote. Past the end, or after a bad length, every read
/// returns zero or empty and ok() is false: callers check once, at the end.
class Decoder {
 public:
  explicit Decoder(ByteSpan in) : in_(in) {}

  template <class T>
    requires std::is_integral_v<T>
  T Get() {
    T value{};
    ByteSpan raw = GetRaw(sizeof value);
    if (ok_) std::memcpy(&value, raw.data(), sizeof value);
    return value;
  }
  /// Reads a byte that must be 0 or 1.
  bool GetBool() {
    const auto value = Get<uint8_t>();
    if (value > 1) SetBad();
    return value == 1;
  }
  std::string_view GetString() { return AsText(GetRaw(Get<uint32_t>())); }
  ByteSpan GetRaw(size_t size) {
    if (!ok_ || size > in_.size()) {
      ok_ = false;
      return {};
    }
    ByteSpan head = in_.first(size);
    in_ = in_.subspan(size);
    return head;
  }
  /// Call it for values that decode but are invalid.
  void SetBad() { ok_ = false; }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] size_t remaining() const { return in_.size(); }

 private:
  ByteSpan in_;
  bool ok_ = true;
};

}  // namespace txfs

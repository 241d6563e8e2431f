#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace txfs::testing {

/// A mapping of the first `size` bytes of a file, to read and to write.
class Mapping {
 public:
  Mapping(int fd, size_t size, int flags)
      : data_(static_cast<char*>(
            mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, fd, 0))),
        size_(size) {}
  ~Mapping() { munmap(data_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] bool valid() const { return data_ != MAP_FAILED; }
  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] bool Sync() const { return msync(data_, size_, MS_SYNC) == 0; }

 private:
  char* data_;
  size_t size_;
};

}  // namespace txfs::testing

// Timed loops over files, for bench/run: one process does all of a row's
// system calls, so that starting processes is not what is measured.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "journal/support/unique_fd.h"

namespace {

using txfs::UniqueFd;

[[noreturn]] void Die(const std::string& what) {
  std::perror(what.c_str());
  std::exit(1);
}

std::vector<std::string> ListFiles(const std::string& root) {
  std::vector<std::string> files;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(root)) {
    if (entry.is_regular_file() && !entry.is_symlink()) {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

UniqueFd OpenOrDie(const std::string& path, int flags) {
  UniqueFd file(open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!file.valid()) Die(path);
  return file;
}

void ReadAll(const std::string& path, std::vector<char>& buffer) {
  const UniqueFd file = OpenOrDie(path, O_RDONLY);
  ssize_t got = 0;
  do {
    got = read(file.get(), buffer.data(), buffer.size());
  } while (got > 0);
  if (got < 0) Die(path);
}

void WriteOrDie(int file, const std::vector<char>& bytes) {
  const ssize_t written = write(file, bytes.data(), bytes.size());
  if (written != static_cast<ssize_t>(bytes.size())) Die("write");
}

void CreateFiles(const std::string& directory, long count, size_t size) {
  const std::vector<char> content(size, 'x');
  for (long i = 0; i < count; ++i) {
    const std::string path = directory + "/f" + std::to_string(i);
    WriteOrDie(OpenOrDie(path, O_WRONLY | O_CREAT | O_EXCL).get(), content);
  }
}

void WriteSequentially(const std::string& path, long mebibytes) {
  const std::vector<char> block(1 << 20, 'y');
  const UniqueFd file = OpenOrDie(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (long i = 0; i < mebibytes; ++i) WriteOrDie(file.get(), block);
  if (fsync(file.get()) != 0) Die(path);
}

void Patch(const std::string& path, off_t offset) {
  const std::vector<char> page(4096, 'z');
  const UniqueFd file = OpenOrDie(path, O_WRONLY);
  if (pwrite(file.get(), page.data(), page.size(), offset) != 4096) Die(path);
  if (fsync(file.get()) != 0) Die(path);
}

/// Appends a byte to each file.
void ChangeFiles(const std::string& root) {
  const std::vector<char> byte(1, 'c');
  for (const std::string& file : ListFiles(root)) {
    WriteOrDie(OpenOrDie(file, O_WRONLY | O_APPEND).get(), byte);
  }
}

double Seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  return elapsed.count();
}

double MeasureReads(const std::string& root) {
  const std::vector<std::string> files = ListFiles(root);
  std::vector<char> buffer(1 << 16);
  return Seconds([&] {
    for (const std::string& file : files) ReadAll(file, buffer);
  });
}

double MeasureStats(const std::string& root) {
  const std::vector<std::string> files = ListFiles(root);
  return Seconds([&] {
    struct stat attributes{};
    for (const std::string& file : files) {
      if (lstat(file.c_str(), &attributes) != 0) Die(file);
    }
  });
}

double MeasureRead(const std::string& path) {
  std::vector<char> buffer(1 << 20);
  return Seconds([&] { ReadAll(path, buffer); });
}

/// Seconds that the loop named by `arguments` took; negative: no such loop.
double Measure(const std::vector<std::string>& arguments) {
  const auto is = [&](std::string_view name, size_t count) {
    return arguments.size() == count && arguments[0] == name;
  };
  const auto number = [&](size_t index) { return std::stol(arguments[index]); };
  if (is("open-read-close", 2)) return MeasureReads(arguments[1]);
  if (is("lstat", 2)) return MeasureStats(arguments[1]);
  if (is("read", 2)) return MeasureRead(arguments[1]);
  if (is("create", 4)) {
    return Seconds([&] {
      CreateFiles(arguments[1], number(2), static_cast<size_t>(number(3)));
    });
  }
  if (is("change", 2)) return Seconds([&] { ChangeFiles(arguments[1]); });
  if (is("write", 3)) {
    return Seconds([&] { WriteSequentially(arguments[1], number(2)); });
  }
  if (is("patch", 3)) {
    return Seconds([&] { Patch(arguments[1], number(2)); });
  }
  return -1;
}

}  // namespace

int main(int argc, char** argv) try {
  const double seconds = Measure({argv + 1, argv + argc});
  if (seconds < 0) {
    std::fputs(
        "usage: fsbench open-read-close|lstat|change DIRECTORY\n"
        "       fsbench create DIRECTORY COUNT BYTES\n"
        "       fsbench write FILE MEBIBYTES | read FILE | patch FILE OFFSET\n",
        stderr);
    return 2;
  }
  std::printf("%.6f\n", seconds);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "fsbench: %s\n", error.what());
  return 1;
}

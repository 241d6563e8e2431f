#include "temp_tree.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace txfs::cli {
namespace {

std::string Slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  content << in.rdbuf();
  return content.str();
}

}  // namespace

TempTree::TempTree(const Tree& tree) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "txfs-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  path_ = std::filesystem::canonical(pattern).string();
  for (const auto& [name, file] : tree) {
    const std::filesystem::path full = path_ + "/" + name;
    std::filesystem::create_directories(full.parent_path());
    if (S_ISLNK(file.mode)) {
      std::filesystem::create_symlink(file.content, full);
      continue;
    }
    std::ofstream(full, std::ios::binary) << file.content;
    ::chmod(full.c_str(), file.mode & 07777);
  }
}

TempTree::~TempTree() { std::filesystem::remove_all(path_); }

Tree TempTree::Read() const {
  Tree tree;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path_)) {
    const std::string full = entry.path().string();
    struct stat st{};
    ::lstat(full.c_str(), &st);
    if (S_ISDIR(st.st_mode)) continue;
    const std::string content =
        S_ISLNK(st.st_mode)
            ? std::filesystem::read_symlink(entry.path()).string()
            : Slurp(full);
    const uint32_t mode = S_ISLNK(st.st_mode) ? 0120000 : st.st_mode;
    tree[full.substr(path_.size() + 1)] = {.mode = mode, .content = content};
  }
  return tree;
}

int TempTree::RunGit(const std::string& arguments, const std::string& input,
                     std::string& output) const {
  const std::string in = path_ + ".in";
  const std::string out = path_ + ".out";
  std::ofstream(in, std::ios::binary) << input;
  const std::string command =
      "umask 022; cd '" + path_ +
      "' && GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null git " +
      arguments + " < '" + in + "' > '" + out + "' 2>&1";
  const int status = std::system(command.c_str());
  output = Slurp(out);
  std::filesystem::remove(in);
  std::filesystem::remove(out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace txfs::cli

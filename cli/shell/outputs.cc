#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "cli/shell/apply_patch.h"
#include "cli/shell/option_words.h"
#include "cli/shell/walker.h"

namespace txfs::cli {
namespace {

using policy::BaseName;
using policy::KnownWord;
using policy::Word;

/// A path on another machine: `host:path`.
bool IsRemotePath(std::string_view text) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && colon > 0 && text.find('/') > colon;
}

/// The operand at the end, or the file in it if it is a directory.
std::vector<Word> Copied(WordSpan operands) {
  if (operands.size() < 2) return {};
  const Word& source = operands[operands.size() - 2];
  Word target = operands.back();
  if (target.text.ends_with('/') || target.text == ".") {
    target.text +=
        "/" +
        std::string(BaseName(source.text.substr(source.text.rfind(':') + 1)));
    target.known_prefix = target.known ? target.text.size() : 0;
  }
  return {target};
}

std::vector<Word> OperandsOf(WordSpan words) {
  std::vector<Word> operands;
  for (const Word& word : words) {
    if (!IsOptionWord(word)) operands.push_back(word);
  }
  return operands;
}

/// Of scp, rsync and the copies of clouds.
std::vector<Word> FilesOfCopy(const std::vector<Word>& words) {
  const std::string_view name = BaseName(words[0].text);
  const std::vector<Word> operands = OperandsOf(WordSpan(words).subspan(1));
  if (operands.size() < 2) return {};
  const std::string_view source = operands[operands.size() - 2].text;
  const bool copies =
      ((name == "scp" || name == "rsync") && IsRemotePath(source)) ||
      ((name == "aws" || name == "gsutil" || name == "gcloud" ||
        name == "rclone" || name == "s3cmd") &&
       (source.contains("://") || IsRemotePath(source)));
  if (!copies || IsRemotePath(operands.back().text)) return {};
  return Copied(operands);
}

/// A program that writes the value of its option `-o`.
bool WritesToOption(std::string_view name) {
  constexpr auto kPrograms = std::to_array<std::string_view>(
      {"curl",  "sort",    "shuf", "gpg", "gcc",   "g++",    "cc",   "c++",
       "clang", "clang++", "ld",   "go",  "rustc", "pandoc", "http", "https",
       "xh",    "tree",    "pv",   "age", "dot",   "nasm",   "as"});
  return std::ranges::find(kPrograms, name) != kPrograms.end();
}

}  // namespace

std::vector<Word> FilesOfDownload(const std::vector<Word>& words) {
  const std::string_view name = BaseName(words[0].text);
  const bool is_curl = name == "curl";
  if (!is_curl && name != "wget" && name != "aria2c") return FilesOfCopy(words);
  std::vector<Word> files;
  bool by_url = name == "wget";
  for (size_t i = 1; i < words.size(); ++i) {
    const std::string_view text = words[i].text;
    const bool names_file =
        is_curl ? text == "-o" || text == "--output" ||
                      (text.size() > 2 && !text.starts_with("--") &&
                       text.starts_with('-') && text.ends_with('o'))
                : text == "-O" || text == "-o" || text == "--output-document" ||
                      text == "--out" ||
                      (text.size() > 2 && !text.starts_with("--") &&
                       text.starts_with('-') && text.ends_with('O'));
    if (names_file && i + 1 < words.size()) {
      files.push_back(words[++i]);
      by_url = false;
    } else if (text.starts_with("--output=") ||
               text.starts_with("--output-document=")) {
      files.push_back(Tail(words[i], text.find('=') + 1));
      by_url = false;
    } else if (text.size() > 2 && (text.starts_with("-O") && !is_curl)) {
      files.push_back(Tail(words[i], 2));
      by_url = false;
    } else if (is_curl && (text == "-O" || text == "--remote-name" ||
                           (text.starts_with('-') && !text.starts_with("--") &&
                            text.contains('O')))) {
      by_url = true;
    }
  }
  if (!by_url) return files;
  std::vector<Word> directory = ValuesOf(
      words, is_curl ? '\0' : 'P', is_curl ? "output-dir" : "directory-prefix");
  for (const Word& word : words) {
    if (IsOptionWord(word)) continue;
    const bool is_url = word.text.contains("://") ||
                        (&word != &words[0] && word.text.contains('.') &&
                         word.text.contains('/'));
    if (!is_url || (!directory.empty() && word.text == directory[0].text)) {
      continue;
    }
    std::string file(BaseName(word.text));
    file = file.substr(0, file.find('?'));
    if (file.empty()) continue;
    if (!directory.empty()) file = directory[0].text + "/" + file;
    files.push_back(KnownWord(file));
  }
  return files;
}

std::vector<Word> OutputsOf(const std::vector<Word>& words) {
  const std::string_view name = BaseName(words[0].text);
  const WordSpan rest = WordSpan(words).subspan(1);
  if (name == "sponge" || name == "split" || name == "csplit") {
    std::vector<Word> operands =
        OperandsOf(BehindOptions(rest, "nablCft", " number lines bytes "));
    if (name != "sponge" && operands.size() < 2) return {};
    if (operands.empty()) return {};
    return {operands.back()};
  }
  if (name == "git" && !ValuesOf(rest, '\0', "output").empty()) {
    return ValuesOf(rest, '\0', "output");
  }
  if (name == "git") {
    const WordSpan clone = BehindSubcommand(rest, "clone", "Cc", "");
    const WordSpan operands = BehindOptions(
        clone, "bjou",
        " branch depth origin config reference template jobs filter "
        "shallow-since upload-pack separate-git-dir server-option ");
    return operands.size() == 2 ? std::vector<Word>{operands[1]}
                                : std::vector<Word>{};
  }
  if (name == "find" || name == "gfind") {
    std::vector<Word> files;
    for (size_t i = 1; i + 1 < words.size(); ++i) {
      const std::string_view text = words[i].text;
      const bool writes = text.starts_with("-fprint") || text == "-fls";
      if (writes) files.push_back(words[i + 1]);
    }
    return files;
  }
  if (name == "unzip") return ValuesOf(rest, 'd', "");
  if (name == "tar" || name == "bsdtar" || name == "gtar") {
    const bool extracts = std::ranges::any_of(rest, [&](const Word& word) {
      const std::string_view text = word.text;
      if (text == "--extract" || text == "--get") return true;
      const bool is_cluster =
          &word == rest.data()
              ? !text.starts_with("--")
              : text.starts_with('-') && !text.starts_with("--");
      return is_cluster && text.contains('x') && !text.contains('/') &&
             !text.contains('.');
    });
    return extracts ? ValuesOf(rest, 'C', "directory") : std::vector<Word>{};
  }
  if (name == "openssl") {
    std::vector<Word> files;
    for (size_t i = 1; i < words.size(); ++i) {
      if (words[i - 1].text == "-out" || words[i - 1].text == "-keyout") {
        files.push_back(words[i]);
      }
    }
    return files;
  }
  std::vector<Word> files = FilesOfDownload(words);
  if (files.empty() && WritesToOption(name) && name != "curl") {
    files = ValuesOf(rest, 'o', "output");
  }
  return files;
}

std::vector<Word> FilesOfPatch(std::string_view patch) {
  std::vector<Word> files;
  for (FileUse& use : FilesInPatch(patch).files) {
    files.push_back(KnownWord(std::move(use.path)));
    if (use.what != FileUse::What::kMove) continue;
    files.push_back(KnownWord(std::move(use.new_path)));
  }
  return files;
}

bool IsCredential(std::string_view before, std::string_view source) {
  constexpr auto kOptions = std::to_array<std::string_view>(
      {"-u", "--user", "--oauth2-bearer", "-a", "--auth", "--bearer",
       "--proxy-user", "--http-password", "--password", "--token"});
  if (std::ranges::find(kOptions, before) != kOptions.end()) return true;
  std::string lower(source);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return lower.contains("authorization:") || lower.contains("-token:") ||
         lower.contains("api-key:") || lower.contains("bearer ");
}

bool SelectsValue(const std::vector<std::string>& feeders,
                  std::string_view file) {
  if (!file.starts_with(".env")) return false;
  const auto selects = [](std::string_view line) {
    std::string_view word = line.substr(0, line.find(' '));
    if (word != "grep") return false;
    do {
      line.remove_prefix(std::min(word.size() + 1, line.size()));
      word = line.substr(0, line.find(' '));
      // -v selects all other lines.
      if (word.starts_with('-') && word.contains('v')) return false;
    } while (word.starts_with('-'));
    if (word.starts_with('^')) word.remove_prefix(1);
    if (word.ends_with('=')) word.remove_suffix(1);
    return word.size() > 2 &&
           word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
               std::string_view::npos;
  };
  bool any = false;
  for (const std::string& line : feeders) {
    if (!line.contains(file)) continue;
    if (!selects(line)) return false;
    any = true;
  }
  return any;
}

}  // namespace txfs::cli

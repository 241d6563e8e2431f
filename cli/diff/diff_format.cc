#include "cli/diff/diff_format.h"

#include <algorithm>

#include "cli/output/text.h"

namespace txfs::cli {
namespace {

const ChangeSide* AnySide(const NetChange& change) {
  if (change.after) return &*change.after;
  return change.before ? &*change.before : nullptr;
}

std::string WithSlash(const std::string& path, const ChangeSide* side) {
  const bool directory =
      side != nullptr && side->attr.type == FileType::kDirectory;
  return directory ? path + "/" : path;
}

const char* TypeName(FileType type) {
  switch (type) {
    case FileType::kRegular:
      return "file";
    case FileType::kDirectory:
      return "directory";
    case FileType::kSymlink:
      return "symlink";
    case FileType::kFifo:
      return "fifo";
    case FileType::kSocket:
      return "socket";
    case FileType::kCharDevice:
      return "char";
    case FileType::kBlockDevice:
      return "block";
  }
  return "file";
}

Document SideDocument(const std::optional<ChangeSide>& side) {
  if (!side) return nullptr;
  Document document;
  document["type"] = TypeName(side->attr.type);
  document["mode"] = side->attr.mode;
  document["uid"] = side->attr.uid;
  document["gid"] = side->attr.gid;
  document["size"] = side->attr.size;
  document["mtime"] = UtcTime(side->attr.mtime);
  if (side->attr.type == FileType::kSymlink) {
    PutPath(document, "target", side->symlink);
  }
  return document;
}

/// `part` of `total` in a bar of `width`: something, where there is something.
size_t Scale(size_t part, size_t total, size_t width) {
  if (part == 0 || total == 0) return 0;
  return std::max<size_t>(1, part * width / total);
}

std::string Bar(const GitLineCounts& lines, size_t most, size_t width) {
  if (most <= width) {
    return std::string(lines.insertions, '+') +
           std::string(lines.deletions, '-');
  }
  return std::string(Scale(lines.insertions, most, width), '+') +
         std::string(Scale(lines.deletions, most, width), '-');
}

std::string Shorten(const std::string& name, size_t width) {
  if (name.size() <= width) return name;
  return "..." + name.substr(name.size() - (width - 3));
}

std::string Sums(const std::vector<StatRow>& rows) {
  size_t insertions = 0;
  size_t deletions = 0;
  for (const StatRow& row : rows) {
    insertions += row.lines.insertions;
    deletions += row.lines.deletions;
  }
  std::string text = " " + Count(rows.size(), "file") + " changed";
  if (insertions != 0 || deletions == 0) {
    text += ", " + Count(insertions, "insertion") + "(+)";
  }
  if (deletions != 0 || insertions == 0) {
    text += ", " + Count(deletions, "deletion") + "(-)";
  }
  return text + "\n";
}

}  // namespace

std::string NameStatusLine(const FileChange& change, bool nul) {
  const NetChange& net = change.net;
  std::string status(1, change.status);
  if (change.status == 'R') {
    const std::string number = std::to_string(change.similarity);
    status += std::string(3 - std::min<size_t>(3, number.size()), '0') + number;
  }
  const auto name = [&](const std::string& path, const ChangeSide* side) {
    const std::string full = WithSlash(path, side);
    return nul ? full : QuotePath(full);
  };
  const char gap = nul ? '\0' : '\t';
  std::string line = status + gap;
  if (!net.old_path.empty()) {
    line += name(net.old_path, net.before ? &*net.before : nullptr) + gap;
  }
  line += name(net.path, AnySide(net));
  return line + (nul ? '\0' : '\n');
}

Document ChangeDocument(const FileChange& change) {
  const NetChange& net = change.net;
  Document item;
  PutPath(item, "path", net.path);
  item["old_path"] = nullptr;
  if (!net.old_path.empty()) PutPath(item, "old_path", net.old_path);
  item["status"] = std::string(1, change.status);
  item["similarity"] = nullptr;
  if (change.status == 'R') item["similarity"] = change.similarity;
  item["type"] = TypeName(AnySide(net) != nullptr ? AnySide(net)->attr.type
                                                  : FileType::kRegular);
  item["content"] = net.content;
  item["attributes"] = net.attributes;
  item["old"] = SideDocument(net.before);
  item["new"] = SideDocument(net.after);
  return item;
}

void WriteJsonArray(const std::vector<FileChange>& changes,
                    const std::function<void(std::string_view)>& write) {
  std::string_view before = "[\n";
  for (const FileChange& change : changes) {
    Document array = Document::array();
    array.push_back(ChangeDocument(change));
    const std::string text = Dump(array, 2);
    write(before);
    // Without its own "[\n" and "\n]".
    write(std::string_view(text).substr(2, text.size() - 4));
    before = ",\n";
  }
  write(changes.empty() ? "[]\n" : "\n]\n");
}

std::string StatName(const FileChange& change) {
  const std::string name = QuotePath(change.net.path);
  if (change.net.old_path.empty()) return name;
  return QuotePath(change.net.old_path) + " => " + name;
}

std::string StatTable(const std::vector<StatRow>& rows, size_t columns) {
  if (rows.empty()) return {};
  size_t name_width = 0;
  size_t most = 0;
  for (const StatRow& row : rows) {
    name_width = std::max(name_width, row.name.size());
    most = std::max(most, row.lines.insertions + row.lines.deletions);
  }
  const size_t number_width = std::to_string(most).size();
  const size_t room = std::max<size_t>(columns, 40) - number_width - 6;
  name_width = std::min(name_width, room - 10);
  const size_t bar_width = room - name_width;
  std::string table;
  for (const StatRow& row : rows) {
    std::string name = Shorten(row.name, name_width);
    name.resize(name_width, ' ');
    table += " " + name + " | ";
    if (row.closed) {
      table += "cannot be read\n";
      continue;
    }
    if (row.lines.binary) {
      table += "Bin " + std::to_string(row.old_size) + " -> " +
               std::to_string(row.new_size) + " bytes\n";
      continue;
    }
    const std::string number =
        std::to_string(row.lines.insertions + row.lines.deletions);
    const std::string bar = Bar(row.lines, most, bar_width);
    table += std::string(number_width - number.size(), ' ') + number +
             (bar.empty() ? "" : " ") + bar + "\n";
  }
  return table + Sums(rows);
}

std::string Coloured(LineStyle style, std::string_view text) {
  const char* start = nullptr;
  switch (style) {
    case LineStyle::kPlain:
      return std::string(text);
    case LineStyle::kHeader:
      start = "\033[1m";
      break;
    case LineStyle::kHunk:
      start = "\033[36m";
      break;
    case LineStyle::kAdded:
      start = "\033[32m";
      break;
    case LineStyle::kDeleted:
      start = "\033[31m";
      break;
  }
  std::string result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (end > 0) result += start + std::string(text.substr(0, end)) + "\033[m";
    if (end < text.size()) result += '\n';
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

}  // namespace txfs::cli

#include "journal/image.h"

#include <algorithm>
#include <cstdio>

namespace txfs {
namespace {

constexpr int kMaxImageDepth = 256;

template <class Map, class Value>
void Assign(Map& map, const typename Map::key_type& key,
            const std::optional<Value>& value) {
  if (value) {
    // Rows of a table come in order.
    map.insert_or_assign(map.end(), key, *value);
  } else {
    map.erase(key);
  }
}

}  // namespace

void Image::SetInode(Ino ino, const std::optional<InodeRecord>& record) {
  Assign(inodes, ino, record);
}

void Image::SetAttr(Ino ino, const Attr& attr) { inodes[ino].attr = attr; }

void Image::SetDentry(Ino parent, const std::string& name,
                      const DentryValue& value) {
  std::optional<DentryValue> row;
  if (value.kind != DentryKind::kAbsent) row = value;
  Assign(dentries, {parent, name}, row);
}

void Image::EraseExtent(Ino ino, const Extent& extent) {
  extents.erase({ino, extent.offset});
}

void Image::PutExtent(Ino ino, const Extent& extent) {
  extents.insert_or_assign(extents.end(), {ino, extent.offset}, extent);
}

void Image::SetXattr(Ino ino, const std::string& name,
                     const std::optional<std::string>& value) {
  Assign(xattrs, {ino, name}, value);
}

std::string Image::Describe(Ino ino) const {
  std::string path;
  Ino at = ino;
  for (int depth = 0; depth < kMaxImageDepth && at != kRootIno; ++depth) {
    const auto name = std::ranges::find_if(dentries, [&](const auto& row) {
      return row.second == DentryValue{DentryKind::kInode, at};
    });
    if (name == dentries.end()) {
      const auto record = inodes.find(at);
      if (record != inodes.end() && record->second.base) {
        path = record->second.base->path + (path.empty() ? "" : "/" + path);
      }
      break;
    }
    path = name->first.second + (path.empty() ? "" : "/" + path);
    at = name->first.first;
  }
  const std::string number = "inode " + std::to_string(Raw(ino));
  return path.empty() ? number : number + " (" + Quote(path) + ")";
}

std::string Quote(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    char escape[5];
    if (byte < 0x20 || byte == 0x7F || c == '"' || c == '\\') {
      std::snprintf(escape, sizeof escape, "\\%03o", byte);
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace txfs

#include "cli/protocol/content_request.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cli/protocol/archive_dispatcher.h"
#include "cli/protocol/wire.h"

namespace txfs::cli {
namespace {

std::unexpected<Error> InvalidParts() {
  return Fail(EPROTO, "the daemon's reply does not have what was asked for");
}

/// Most bytes of names in a request that has several: with all of them
/// escaped, it is still shorter than kRequestMax.
constexpr size_t kNamesMax = 2 << 20;

size_t NameBytes(const ChangeSide& side) {
  return side.base_path.size() + side.vault_path.size() +
         (side.delta ? side.delta->name.size() : 0);
}

}  // namespace

Result<Contents> ContentRequest::ReadWhole(std::span<const WantedSide> sides,
                                           uint64_t limit) {
  Contents contents(sides.size());
  std::vector<Part> parts;
  for (size_t i = 0; i < sides.size(); ++i) {
    const ChangeSide& side = *sides[i].side;
    if (side.attr.type == FileType::kSymlink) {
      contents[i] = side.symlink;
      continue;
    }
    // One byte more shows that there is no more.
    const uint64_t length =
        std::min<uint64_t>(side.attr.size, kPayloadMax - 1) + 1;
    parts.push_back({.side = i, .offset = 0, .length = length});
  }
  std::vector<size_t> longer;
  TRY(Read(sides, parts, [&](const Part& part, Result<std::string> content) {
    if (content && content->size() == part.length) longer.push_back(part.side);
    contents[part.side] = std::move(content);
  }));
  for (const size_t i : longer) {
    TRY(ReadRest(sides, i, limit, contents[i]));
  }
  for (Result<std::string>& content : contents) {
    if (content && content->size() > limit) {
      content = Fail(EFBIG, "file content");
    }
  }
  return contents;
}

Result<std::vector<Status>> ContentRequest::Probe(
    std::span<const WantedSide> sides) {
  std::vector<Part> parts;
  for (size_t i = 0; i < sides.size(); ++i) {
    parts.push_back({.side = i, .offset = 0, .length = 1});
  }
  std::vector<Status> probed(sides.size());
  TRY(Read(sides, parts, [&](const Part& part, Result<std::string> content) {
    if (!content) probed[part.side] = std::unexpected(content.error());
  }));
  return probed;
}

Status ContentRequest::Read(std::span<const WantedSide> sides,
                            std::span<const Part> parts, const TakePart& take) {
  while (!parts.empty()) {
    uint64_t bytes = 0;
    size_t names = 0;
    size_t count = 0;
    for (; count < std::min(parts.size(), kReadItemsMax); ++count) {
      bytes += parts[count].length;
      names += NameBytes(*sides[parts[count].side].side);
      const bool is_full = bytes > kPayloadMax || names > kNamesMax;
      if (is_full && count != 0) break;
    }
    TRY(ReadBatch(sides, parts.first(count), take));
    parts = parts.subspan(count);
  }
  return {};
}

Status ContentRequest::ReadBatch(std::span<const WantedSide> sides,
                                 std::span<const Part> parts,
                                 const TakePart& take) {
  Json items = Json::array();
  for (const Part& part : parts) {
    Json item = item_of_(sides[part.side], part.offset, part.length);
    item["offset"] = part.offset;
    item["length"] = part.length;
    items.push_back(std::move(item));
  }
  const Frame reply = TRY(
      connection_.Call({{"request", request_}, {"items", std::move(items)}}));
  const Json& got = GetMember(reply.header, "parts");
  if (!got.is_array() || got.size() != parts.size()) return InvalidParts();
  size_t used = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!got[i].is_number_unsigned()) {
      take(parts[i],
           std::unexpected(ErrorFromJson(GetMember(got[i], "error"))));
      continue;
    }
    const auto size = got[i].get<uint64_t>();
    if (size > parts[i].length || size > reply.payload.size() - used) {
      return InvalidParts();
    }
    take(parts[i], reply.payload.substr(used, size));
    used += size;
  }
  return {};
}

Status ContentRequest::ReadRest(std::span<const WantedSide> sides, size_t side,
                                uint64_t limit, Result<std::string>& content) {
  for (bool at_end = false; !at_end && content && content->size() <= limit;) {
    const Part part{
        .side = side, .offset = content->size(), .length = kPayloadMax};
    TRY(ReadBatch(sides, {&part, 1}, [&](const Part&, Result<std::string> got) {
      at_end = got && got->size() < kPayloadMax;
      if (got) {
        *content += *got;
      } else {
        content = std::move(got);
      }
    }));
  }
  return {};
}

}  // namespace txfs::cli

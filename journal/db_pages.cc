#include "journal/db_pages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "journal/support/bytes.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

// As LMDB 0.9 lays its pages out on 64 bits.
constexpr size_t kHeaderSize = 16;
constexpr size_t kNodeSize = 8;
constexpr size_t kPageNumberSize = 8;
constexpr size_t kTableSize = 48;
constexpr size_t kLongestKey = 511;
/// Its cursors go no deeper than 32 pages.
constexpr size_t kMaxDepth = 31;
constexpr uint64_t kFirstPage = 2;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr uint32_t kMagic = 0xBEEFC0DE;
constexpr uint32_t kVersion = 1;

constexpr uint16_t kBranch = 0x01;
constexpr uint16_t kLeaf = 0x02;
constexpr uint16_t kOverflow = 0x04;
constexpr uint16_t kMeta = 0x08;

constexpr uint16_t kBigData = 0x01;
constexpr uint16_t kSubData = 0x02;

/// Integers as keys, of the free list.
constexpr uint16_t kIntegerKey = 0x08;

/// What a tree of pages is.
enum class TreeKind { kFree, kNames, kTable };

struct Table {
  uint16_t flags = 0;
  uint16_t depth = 0;
  uint64_t root = kNoPage;
};

Table DecodeTable(Decoder& in) {
  Table table;
  in.Get<uint32_t>();
  table.flags = in.Get<uint16_t>();
  table.depth = in.Get<uint16_t>();
  in.GetRaw(4 * sizeof(uint64_t));
  table.root = in.Get<uint64_t>();
  return table;
}

/// One of the first two pages.
struct Meta {
  bool sound = false;
  uint32_t page_size = 0;
  Table free, names;
  uint64_t last_page = 0;
  uint64_t batch = 0;
};

Meta DecodeMeta(ByteSpan page) {
  Decoder in(page);
  Meta meta;
  in.GetRaw(10);
  const auto flags = in.Get<uint16_t>();
  in.GetRaw(4);
  const auto magic = in.Get<uint32_t>();
  const auto version = in.Get<uint32_t>();
  in.GetRaw(16);
  meta.page_size = Decoder(page.subspan(40)).Get<uint32_t>();
  meta.free = DecodeTable(in);
  meta.names = DecodeTable(in);
  meta.last_page = in.Get<uint64_t>();
  meta.batch = in.Get<uint64_t>();
  // A flag of the free list may be one of the environment: that its map has a
  // fixed address.
  meta.sound = in.ok() && (flags & kMeta) != 0 && magic == kMagic &&
               version == kVersion && std::has_single_bit(meta.page_size) &&
               meta.page_size >= 512 && meta.page_size <= 65536 &&
               meta.free.flags == kIntegerKey && meta.names.flags == 0;
  return meta;
}
constexpr size_t kMetaSize = kHeaderSize + 24 + 2 * kTableSize + 16;

uint64_t NumberIn(ByteSpan bytes) { return Decoder(bytes).Get<uint64_t>(); }

class PageCheck {
 public:
  explicit PageCheck(int data) : data_(data) {}

  Status Run() {
    const Meta meta = TRY(NewestMeta());
    page_size_ = meta.page_size;
    batch_ = meta.batch;
    used_.resize(meta.last_page + 1);
    TRY(CheckTree(meta.names, TreeKind::kNames));
    const std::vector<Table> tables = std::exchange(tables_, {});
    for (const Table& table : tables) {
      if (table.flags != 0) return Damaged("a table has unknown flags");
      TRY(CheckTree(table, TreeKind::kTable));
    }
    return CheckTree(meta.free, TreeKind::kFree);
  }

 private:
  struct Page {
    uint64_t number = 0;
    ByteSpan bytes;
    size_t count = 0;  ///< of nodes
    size_t upper = 0;  ///< where nodes begin
  };
  struct Node {
    size_t begin = 0, size = 0;  ///< in its page
    uint16_t flags = 0;
    uint64_t data_size = 0;
    ByteSpan key, data;  ///< of a branch: no data
    uint64_t child = 0;  ///< of a branch
  };

  static std::unexpected<Error> Damaged(const std::string& what) {
    return Fail(EBADMSG, what);
  }
  static std::unexpected<Error> Damaged(uint64_t page, const char* what) {
    return Damaged("page " + std::to_string(page) + " " + what);
  }

  Result<Meta> ReadMeta(uint64_t at) const {
    Bytes bytes(kMetaSize);
    if (TRY(ReadFully(data_, at, bytes)) != bytes.size()) {
      return Damaged("it is cut short");
    }
    const Meta meta = DecodeMeta(bytes);
    if (!meta.sound) return Damaged("one of its first two pages is not valid");
    return meta;
  }

  Result<Meta> NewestMeta() const {
    const Meta first = TRY(ReadMeta(0));
    const Meta second = TRY(ReadMeta(first.page_size));
    if (second.page_size != first.page_size) {
      return Damaged("its first two pages differ");
    }
    const bool is_second = first.batch < second.batch;
    const Meta& newest = is_second ? second : first;
    // LMDB finds the newest one by this number, but the one that a transaction
    // begins from by whether that is odd (mdb_txn_renew0).
    if ((newest.batch % 2 != 0) != is_second) {
      return Damaged("its first two pages do not belong together");
    }
    struct stat st{};
    if (::fstat(data_, &st) != 0) return Fail(errno, "stat tables");
    const uint64_t pages = static_cast<uint64_t>(st.st_size) / newest.page_size;
    // As many as this program can count without much memory.
    constexpr uint64_t kMaxPages = uint64_t{1} << 30;
    // The last pages may be missing when nothing is in them.
    constexpr uint64_t kSlack = 64;
    if (newest.last_page < 1 || newest.last_page >= pages + kSlack ||
        newest.last_page >= kMaxPages) {
      return Damaged("it is cut short, or its first pages are damaged");
    }
    return newest;
  }

  /// Notes that `count` pages from `page` on are in use, by one owner.
  Status Take(uint64_t page, uint64_t count) {
    if (page < kFirstPage || page >= used_.size() ||
        count > used_.size() - page) {
      return Damaged(page, "is not in the file");
    }
    for (uint64_t i = page; i < page + count; ++i) {
      if (used_[i]) return Damaged(i, "is used twice");
      used_[i] = true;
    }
    return {};
  }

  Status CheckTree(const Table& table, TreeKind kind) {
    has_last_key_ = false;
    if (table.root == kNoPage && table.depth == 0) return {};
    if (table.depth < 1 || table.depth > kMaxDepth) {
      return Damaged("a table has an impossible depth");
    }
    return Visit(table.root, table.depth, kind);
  }

  Result<Page> ReadPage(uint64_t number, size_t depth, TreeKind kind) {
    TRY(Take(number, 1));
    Bytes& bytes = pages_[depth];
    bytes.resize(page_size_);
    if (TRY(ReadFully(data_, number * page_size_, bytes)) != bytes.size()) {
      return Damaged(number, "is cut off");
    }
    Decoder in(bytes);
    const bool is_this = in.Get<uint64_t>() == number;
    in.Get<uint16_t>();
    // Nothing but this: one that is said to be in memory is written to.
    const bool is_kind = in.Get<uint16_t>() == (depth == 1 ? kLeaf : kBranch);
    const size_t lower = in.Get<uint16_t>();
    const size_t upper = in.Get<uint16_t>();
    if (!is_this || !is_kind || lower < kHeaderSize || lower % 2 != 0 ||
        lower > upper || upper > page_size_) {
      return Damaged(number, "has the wrong type");
    }
    const size_t count = (lower - kHeaderSize) / 2;
    const bool may_be_single = depth == 1 || kind == TreeKind::kFree;
    if (count < (may_be_single ? 1U : 2U)) return Damaged(number, "is empty");
    return Page{number, bytes, count, upper};
  }

  Status Visit(uint64_t number, size_t depth, TreeKind kind) {
    const Page page = TRY(ReadPage(number, depth, kind));
    // Used again by the next page at this depth, after all below this one.
    std::vector<Node>& nodes = nodes_[depth];
    nodes.clear();
    std::vector<std::pair<size_t, size_t>>& places = places_;
    places.clear();
    for (size_t i = 0; i < page.count; ++i) {
      const Node& node = nodes.emplace_back(TRY(NodeOf(page, i, depth)));
      places.emplace_back(node.begin, node.begin + node.size);
    }
    TRY(CheckPlaces(page, places));
    for (size_t i = 0; i < page.count; ++i) {
      const Node& node = nodes[i];
      if (depth == 1) {
        TRY(CheckRow(page, node, kind));
        continue;
      }
      // The first key of a branch is not looked at.
      if (kind == TreeKind::kFree && i > 0 && node.key.size() != 8) {
        return Damaged(number, "has a key of the wrong size");
      }
      TRY(Visit(node.child, depth - 1, kind));
    }
    return {};
  }

  Result<Node> NodeOf(const Page& page, size_t index, size_t depth) const {
    Decoder pointers(page.bytes.subspan(kHeaderSize + 2 * index));
    Node node;
    node.begin = pointers.Get<uint16_t>();
    const bool starts_there = node.begin >= page.upper && node.begin % 2 == 0 &&
                              node.begin <= page.bytes.size();
    if (!starts_there)
      return Damaged(page.number, "has a row outside of the page");
    Decoder in(page.bytes.subspan(node.begin));
    const uint64_t low = in.Get<uint16_t>();
    const uint64_t high = in.Get<uint16_t>();
    node.flags = in.Get<uint16_t>();
    const size_t key_size = in.Get<uint16_t>();
    node.key = in.GetRaw(key_size);
    node.size = kNodeSize + key_size;
    node.data_size = low | high << 16;
    if (depth > 1) {
      node.child = node.data_size | uint64_t{node.flags} << 32;
    } else {
      node.data = in.GetRaw((node.flags & kBigData) != 0 ? kPageNumberSize
                                                         : node.data_size);
      node.size += node.data.size();
    }
    node.size += node.size % 2;
    if (!in.ok() || key_size > kLongestKey) {
      return Damaged(page.number, "has a row that is larger than the page");
    }
    return node;
  }

  /// Nodes lie one behind the other up to the end of the page: what LMDB moves
  /// when it deletes one depends on it.
  static Status CheckPlaces(const Page& page,
                            std::vector<std::pair<size_t, size_t>>& places) {
    std::ranges::sort(places);
    size_t at = page.upper;
    for (const auto& [begin, end] : places) {
      if (begin != at)
        return Damaged(page.number, "has gaps or overlaps between its rows");
      at = end;
    }
    if (at == page.bytes.size()) return {};
    return Damaged(page.number, "has gaps or overlaps between its rows");
  }

  Status CheckRow(const Page& page, const Node& node, TreeKind kind) {
    const uint16_t flags = node.flags;
    const bool fits = kind == TreeKind::kNames
                          ? flags == kSubData && node.data.size() == kTableSize
                          : (flags & ~kBigData) == 0;
    const bool has_key =
        kind == TreeKind::kFree ? node.key.size() == 8 : !node.key.empty();
    if (!fits || !has_key)
      return Damaged(page.number, "has a row that is not valid");
    TRY(CheckOrder(page, node, kind));
    uint64_t overflow = kNoPage;
    if ((flags & kBigData) != 0) {
      overflow = NumberIn(node.data);
      TRY(TakeOverflow(overflow, node.data_size));
    }
    if (kind == TreeKind::kNames) {
      Decoder in(node.data);
      tables_.push_back(DecodeTable(in));
    }
    if (kind == TreeKind::kFree) return CheckFree(page, node, overflow);
    return {};
  }

  Status CheckOrder(const Page& page, const Node& node, TreeKind kind) {
    const bool in_order =
        !has_last_key_ ||
        (kind == TreeKind::kFree
             ? NumberIn(last_key_) < NumberIn(node.key)
             : std::ranges::lexicographical_compare(last_key_, node.key));
    if (!in_order) return Damaged(page.number, "has a row out of order");
    last_key_.assign(node.key.begin(), node.key.end());
    has_last_key_ = true;
    return {};
  }

  Status TakeOverflow(uint64_t number, uint64_t size) {
    if (number < kFirstPage || number >= used_.size()) {
      return Damaged(number, "is not in the file");
    }
    std::array<std::byte, kHeaderSize> header;
    if (TRY(ReadFully(data_, number * page_size_, header)) != header.size()) {
      return Damaged(number, "is cut off");
    }
    Decoder in(header);
    const bool is_this = in.Get<uint64_t>() == number;
    in.Get<uint16_t>();
    const bool is_kind = in.Get<uint16_t>() == kOverflow;
    const uint64_t pages = in.Get<uint32_t>();
    if (!is_this || !is_kind || pages == 0 ||
        size > pages * page_size_ - kHeaderSize) {
      return Damaged(number, "has the wrong type");
    }
    TRY(Take(number, pages));
    struct stat st{};
    if (::fstat(data_, &st) != 0) return Fail(errno, "stat tables");
    const bool whole = number * page_size_ + kHeaderSize + size <=
                       static_cast<uint64_t>(st.st_size);
    return whole ? Status() : Damaged(number, "is cut off");
  }

  /// A list of pages that a batch, whose number is the key, did not need any
  /// more: how many, then their numbers, the highest first.
  Status CheckFree(const Page& page, const Node& node, uint64_t overflow) {
    const uint64_t batch = NumberIn(node.key);
    uint64_t at = overflow * page_size_ + kHeaderSize;
    Bytes list(node.data.begin(), node.data.end());
    if (overflow != kNoPage) list = TRY(ReadNumbers(at, 1));
    uint64_t left = NumberIn(list);
    if (batch == 0 || batch > batch_ || node.data_size < kPageNumberSize ||
        left > node.data_size / kPageNumberSize - 1) {
      return Damaged(page.number, "has a list of free pages that is not valid");
    }
    list.erase(list.begin(), list.begin() + kPageNumberSize);
    at += kPageNumberSize;
    uint64_t last = kNoPage;
    while (left > 0) {
      if (overflow != kNoPage) list = TRY(ReadNumbers(at, left));
      const uint64_t count = std::min(left, list.size() / kPageNumberSize);
      TRY(TakeFree(page, ByteSpan(list).first(count * kPageNumberSize), last));
      at += count * kPageNumberSize;
      left -= count;
    }
    return {};
  }

  /// Up to a good many of `count` page numbers of an overflow page.
  [[nodiscard]] Result<Bytes> ReadNumbers(uint64_t at, uint64_t count) const {
    constexpr uint64_t kAtOnce = 8192;
    Bytes numbers(std::min(count, kAtOnce) * kPageNumberSize);
    if (TRY(ReadFully(data_, at, numbers)) == numbers.size()) return numbers;
    return Damaged("it is cut short");
  }

  Status TakeFree(const Page& page, ByteSpan numbers, uint64_t& last) {
    Decoder in(numbers);
    while (in.remaining() != 0) {
      const auto free = in.Get<uint64_t>();
      if (free >= last) {
        return Damaged(page.number, "has free pages out of order");
      }
      TRY(Take(free, 1));
      last = free;
    }
    return {};
  }

  const int data_;
  size_t page_size_ = 0;
  uint64_t batch_ = 0;
  std::vector<bool> used_;                  ///< by page
  std::array<Bytes, kMaxDepth + 1> pages_;  ///< on the way down, by depth
  std::array<std::vector<Node>, kMaxDepth + 1> nodes_;  ///< in these pages
  std::vector<std::pair<size_t, size_t>> places_;       ///< reused
  std::vector<Table> tables_;
  Bytes last_key_;
  bool has_last_key_ = false;
};

}  // namespace

Status CheckPages(int data) { return PageCheck(data).Run(); }

}  // namespace txfs

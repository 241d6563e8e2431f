#include "journal/check_spool.h"

#include <fcntl.h>

#include <algorithm>
#include <set>

#include "journal/spool.h"
#include "journal/support/checksum.h"
#include "journal/support/file.h"

namespace txfs {
namespace {

struct Part {
  uint64_t from = 0, to = 0;  ///< bytes of the record
  Ino ino = kNoIno;
};

/// A record as the extents that point into it describe it.
struct Use {
  ContentRef ref;
  std::vector<Part> parts;
};

using Place = std::pair<uint32_t, uint64_t>;
using Uses = std::map<Place, Use>;

std::string PlaceOf(const ContentRef& ref) {
  return SegmentName(ref.segment) + " at " +
         std::to_string(ref.record_position);
}

bool IsSameRecord(const ContentRef& a, const ContentRef& b) {
  return a.record_length == b.record_length && a.checksum == b.checksum;
}

/// `tables`: for names in messages.
void AddUse(const Image& tables, Ino ino, const Extent& extent, Uses& uses,
            Findings& findings) {
  const ContentRef& ref = extent.content;
  if (ref.segment == 0) return;
  Use& use = uses[{ref.segment, ref.record_position}];
  if (use.parts.empty()) use.ref = ref;
  if (!IsSameRecord(use.ref, ref)) {
    findings.Add("spool.record",
                 "two extents describe the record differently in " +
                     PlaceOf(ref) + ": " + tables.Describe(ino) + " and " +
                     tables.Describe(use.parts.front().ino));
  }
  use.parts.push_back({ref.delta, ref.delta + extent.length, ino});
}

Uses CollectUses(const Image& tables, Findings& findings) {
  Uses uses;
  for (const auto& [key, extent] : tables.extents) {
    AddUse(tables, key.first, extent, uses, findings);
  }
  return uses;
}

/// Those of what `back` brought back, which leads to `past`.
Uses CollectUses(const Image& past, const Rewind& back, Findings& findings) {
  Uses uses;
  for (const auto& inode : back.inodes) {
    for (const auto& [offset, extent] : inode.extents) {
      if (extent) AddUse(past, inode.ino, *extent, uses, findings);
    }
  }
  return uses;
}

// Space is given back when as much of a record has died as it has bytes: what
// is shared would be lost.
void CheckShares(const Image& tables, Uses& uses, Findings& findings) {
  for (auto& [place, use] : uses) {
    std::ranges::sort(use.parts, {}, &Part::from);
    for (size_t i = 1; i < use.parts.size(); ++i) {
      if (use.parts[i - 1].to <= use.parts[i].from) continue;
      findings.Add("spool.overlap",
                   "two extents share content in " + PlaceOf(use.ref) + ": " +
                       tables.Describe(use.parts[i - 1].ino) + " and " +
                       tables.Describe(use.parts[i].ino));
    }
  }
}

void CheckOverlaps(const Image& tables, const Uses& uses, Findings& findings) {
  const Use* last = nullptr;
  for (const auto& [place, use] : uses) {
    if (last != nullptr && last->ref.segment == use.ref.segment &&
        last->ref.record_position + last->ref.record_length >
            use.ref.record_position) {
      findings.Add("spool.overlap",
                   "two records overlap: " + PlaceOf(last->ref) + " of " +
                       tables.Describe(last->parts.front().ino) + " and " +
                       PlaceOf(use.ref) + " of " +
                       tables.Describe(use.parts.front().ino));
    }
    last = &use;
  }
}

void CheckOwners(const Image& tables, const Uses& uses, Findings& findings) {
  std::map<uint32_t, Ino> owners;
  for (const auto& [ino, record] : tables.inodes) {
    const uint32_t segment = record.attr.own_segment;
    if (segment == 0) continue;
    const auto [owner, is_new] = owners.try_emplace(segment, ino);
    if (!is_new) {
      findings.Add("spool.owner", "segment " + SegmentName(segment) +
                                      " belongs to two inodes: " +
                                      tables.Describe(owner->second) + " and " +
                                      tables.Describe(ino));
    }
  }
  for (const auto& [place, use] : uses) {
    const auto owner = owners.find(place.first);
    if (owner == owners.end()) continue;
    for (const Part& part : use.parts) {
      if (part.ino == owner->second) continue;
      findings.Add("spool.owner",
                   tables.Describe(part.ino) + " has content in segment " +
                       SegmentName(place.first) + ", which belongs to " +
                       tables.Describe(owner->second));
    }
  }
}

void VerifyContent(SpoolReader& spool, const Image& tables, const Uses& uses,
                   Findings& findings) {
  for (const auto& [place, use] : uses) {
    findings.report().content_bytes += use.ref.record_length;
    const Status verified = spool.Verify(use.ref);
    if (verified) continue;
    findings.Add("spool.content",
                 "content of " + tables.Describe(use.parts.front().ino) +
                     " is damaged: " + verified.error().message);
  }
}

}  // namespace

Result<SpoolReader> SpoolReader::Open(int dir) {
  auto fd = OpenDirectoryBelow(dir, "spool");
  if (!fd && (fd.error().code == ENOENT || fd.error().code == ENOTDIR)) {
    return Fail(EBADMSG, "it is missing");
  }
  return SpoolReader(TRY(std::move(fd)));
}

Result<std::vector<std::string>> SpoolReader::List() {
  return ListNames(dir_.get(), ".");
}

Status SpoolReader::Verify(const ContentRef& ref) {
  if (ref.record_length == 0 || ref.record_length > kRecordContentMax) {
    return Fail(EBADMSG, "the record in " + PlaceOf(ref) +
                             " has an impossible length: " +
                             std::to_string(ref.record_length));
  }
  if (open_ != ref.segment) {
    auto fd = OpenFileBelow(dir_.get(), SegmentName(ref.segment), O_RDONLY);
    if (!fd) {
      return Fail(EBADMSG, "segment " + SegmentName(ref.segment) +
                               " cannot be opened: " + fd.error().ToString());
    }
    segment_ = std::move(*fd);
    open_ = ref.segment;
  }
  buffer_.resize(ref.record_length);
  const auto size = ReadFully(segment_.get(), ref.record_position, buffer_);
  if (!size) {
    return Fail(EBADMSG,
                PlaceOf(ref) + " cannot be read: " + size.error().ToString());
  }
  if (*size != buffer_.size()) {
    return Fail(EBADMSG, PlaceOf(ref) + " ends in the middle of a record");
  }
  if (Checksum(buffer_) == ref.checksum) return {};
  return Fail(EBADMSG, PlaceOf(ref) + " does not match its checksum");
}

void CheckContent(
    SpoolReader& spool, const Image& tables,
    const std::function<void(const Replay::PastVisitor&)>& visit_pasts,
    Findings findings) {
  Uses uses = CollectUses(tables, findings);
  CheckShares(tables, uses, findings);
  CheckOverlaps(tables, uses, findings);
  CheckOwners(tables, uses, findings);
  VerifyContent(spool, tables, uses, findings);
  visit_pasts([&](const Image& past, const Rewind& back) {
    Uses older = CollectUses(past, back, findings);
    std::erase_if(
        older, [&](const auto& entry) { return uses.contains(entry.first); });
    VerifyContent(spool, past, older, findings);
    uses.merge(older);
  });
}

std::set<uint32_t> SegmentsOf(const Image& image) {
  std::set<uint32_t> segments;
  for (const auto& [place, extent] : image.extents) {
    segments.insert(extent.content.segment);
  }
  for (const auto& [ino, record] : image.inodes) {
    segments.insert(record.attr.own_segment);
  }
  return segments;
}

std::set<uint32_t> SegmentsOf(const Rewind& rewind) {
  std::set<uint32_t> segments;
  for (const auto& past : rewind.inodes) {
    if (past.has == Rewind::PastInode::Record::kReturns) {
      segments.insert(past.record->attr.own_segment);
    }
    if (past.attr) segments.insert(past.attr->own_segment);
    for (const auto& [offset, extent] : past.extents) {
      if (extent) segments.insert(extent->content.segment);
    }
  }
  return segments;
}

Status CheckSegments(SpoolReader& spool, const std::set<uint32_t>& used,
                     Findings findings) {
  for (const std::string& name : TRY(spool.List())) {
    const uint32_t id = SegmentId(name);
    if (id == 0) {
      findings.Add("spool.entry", Quote(name) + " is not a segment");
    } else if (!used.contains(id)) {
      findings.Note(findings.place() + "/" + name +
                    " is not in use; the next open of the journal removes it");
    }
  }
  return {};
}

}  // namespace txfs

#include "fs/commit_image.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "fs/owner_access.h"
#include "journal/base/checksum.h"

namespace txfs {
namespace {

constexpr std::string_view kMagic = "TXFSIMG\n";
constexpr uint32_t kVersion = 1;

ImageEntry EntryOf(const std::string& path, const struct stat& st) {
  return {.path = path,
          .exists = true,
          .ino = st.st_ino,
          .mode = st.st_mode,
          .uid = st.st_uid,
          .gid = st.st_gid,
          .size = S_ISDIR(st.st_mode) ? 0 : static_cast<uint64_t>(st.st_size),
          .mtime = Timestamp::From(st.st_mtim)};
}

/// A commit may leave a directory that denies its owner what an image takes.
Result<struct stat> StatAsOwner(const BaseDirectory& base,
                                const std::string& path) {
  return AsOwner(base, std::string(ParentPath(path)),
                 [&] { return base.Stat(path); });
}

Result<std::vector<BaseEntry>> ListAsOwner(const BaseDirectory& base,
                                           const std::string& path) {
  return AsOwner(base, path, [&] { return base.List(path); });
}

class ImageTaker {
 public:
  explicit ImageTaker(const BaseDirectory& base) : base_(base) {}

  Result<CommitImage> Take(const CommitSteps& steps) {
    for (const CommitStep& step : steps) {
      if (step.kind == StepKind::kMove && step.to.vault) {
        detached_.insert(step.to.path);
      }
    }
    for (const CommitStep& step : steps) TRY(TakeStep(step));
    CommitImage image;
    for (auto& [path, entry] : entries_) image.push_back(std::move(entry));
    return image;
  }

 private:
  Status TakeStep(const CommitStep& step) {
    switch (step.kind) {
      case StepKind::kMove:
        if (step.to.vault) return TakeGone(step.from.path);
        return TakeTree(step.to.path, !detached_.contains(step.from.path));
      case StepKind::kUnlink:
        return step.to.vault ? Status() : TakeGone(step.to.path);
      case StepKind::kLink:
        return step.to.vault ? Status() : TakeTree(step.to.path, false);
      case StepKind::kExchange:
        return TakeTree(step.to.path, false);
      case StepKind::kAttributes:
        return step.set_after ? TakeTree(step.to.path, false) : Status();
      case StepKind::kPatch:
        return {};  // its attributes are set where the file is in the end
    }
    return {};
  }

  Status TakeGone(const std::string& path) {
    const auto st = StatAsOwner(base_, path);
    // What has the name now is the business of the step that brought it.
    if (st) return {};
    if (st.error().code != ENOENT) return std::unexpected(st.error());
    entries_.try_emplace(path, ImageEntry{.path = path});
    return {};
  }

  Status TakeTree(const std::string& path, bool whole) {
    const auto st = StatAsOwner(base_, path);
    if (!st && st.error().code == ENOENT) return TakeGone(path);
    if (!st) return std::unexpected(st.error());
    ImageEntry entry = EntryOf(path, *st);
    const auto known = entries_.find(path);
    entry.whole = S_ISDIR(st->st_mode) &&
                  (whole || (known != entries_.end() && known->second.whole));
    entries_.insert_or_assign(path, entry);
    if (!whole || !S_ISDIR(st->st_mode)) return {};
    for (const BaseEntry& child : TRY(ListAsOwner(base_, path))) {
      const std::string child_path = JoinPath(path, child.name);
      if (!entries_.contains(child_path)) TRY(TakeTree(child_path, true));
    }
    return {};
  }

  const BaseDirectory& base_;
  std::set<std::string> detached_;
  std::map<std::string, ImageEntry> entries_;
};

/// "" when `now` is what `then` says.
std::string Difference(const ImageEntry& then, const ImageEntry& now) {
  if (then.exists != now.exists) return then.exists ? "deleted" : "created";
  if (!then.exists) return "";
  const bool is_directory = S_ISDIR(then.mode);
  const bool same = then.ino == now.ino && then.mode == now.mode &&
                    then.uid == now.uid && then.gid == now.gid &&
                    then.size == now.size &&
                    (is_directory || then.mtime == now.mtime);
  return same ? "" : "changed";
}

Result<ImageEntry> LookAt(const BaseDirectory& base, const std::string& path) {
  const auto st = StatAsOwner(base, path);
  if (st) return EntryOf(path, *st);
  if (st.error().code != ENOENT) return std::unexpected(st.error());
  return ImageEntry{.path = path};
}

}  // namespace

Result<CommitImage> TakeImage(const BaseDirectory& base,
                              const CommitSteps& steps) {
  return ImageTaker(base).Take(steps);
}

Result<std::vector<Conflict>> CompareImage(const BaseDirectory& base,
                                           const CommitImage& image) {
  std::vector<Conflict> conflicts;
  std::set<std::string_view> known;
  for (const ImageEntry& entry : image) known.insert(entry.path);
  for (const ImageEntry& then : image) {
    const ImageEntry now = TRY(LookAt(base, then.path));
    if (std::string difference = Difference(then, now); !difference.empty()) {
      conflicts.push_back({ShownPath(then.path), std::move(difference)});
      continue;
    }
    if (!then.whole) continue;
    for (const BaseEntry& child : TRY(ListAsOwner(base, then.path))) {
      std::string path = JoinPath(then.path, child.name);
      if (!known.contains(path)) {
        conflicts.push_back({std::move(path), "created"});
      }
    }
  }
  return conflicts;
}

Status KeepLaterTimes(const BaseDirectory& base, const CommitImage& image,
                      CommitSteps& undo) {
  std::map<std::string_view, const ImageEntry*> by_path;
  for (const ImageEntry& entry : image) by_path[entry.path] = &entry;
  for (CommitStep& step : undo) {
    if (step.kind != StepKind::kAttributes || !step.set_after) continue;
    if (step.set_after->type != FileType::kDirectory) continue;
    const auto then = by_path.find(step.from.path);
    if (then == by_path.end()) continue;
    const ImageEntry now = TRY(LookAt(base, step.from.path));
    if (now.mtime != then->second->mtime) step.set_after->mtime = now.mtime;
  }
  return {};
}

Bytes EncodeImage(const CommitImage& image) {
  Bytes bytes;
  Encoder out(bytes);
  out.PutRaw(AsBytes(kMagic));
  out.Put(kVersion);
  out.Put(static_cast<uint32_t>(image.size()));
  for (const ImageEntry& entry : image) {
    out.PutString(entry.path);
    out.Put(static_cast<uint8_t>(entry.exists));
    out.Put(static_cast<uint8_t>(entry.whole));
    out.Put(entry.ino);
    out.Put(entry.mode);
    out.Put(entry.uid);
    out.Put(entry.gid);
    out.Put(entry.size);
    EncodeTime(entry.mtime, out);
  }
  out.Put(Checksum(bytes));
  return bytes;
}

Result<CommitImage> DecodeImage(ByteSpan in) {
  Decoder decoder(in);
  const bool is_image = AsText(decoder.GetRaw(kMagic.size())) == kMagic;
  if (is_image && decoder.Get<uint32_t>() > kVersion) {
    return Fail(EPROTONOSUPPORT, "newer commit image",
                "use the newer txfs that wrote it");
  }
  CommitImage image;
  const auto count = decoder.Get<uint32_t>();
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    ImageEntry& entry = image.emplace_back();
    entry.path = decoder.GetString();
    entry.exists = decoder.Get<uint8_t>() != 0;
    entry.whole = decoder.Get<uint8_t>() != 0;
    entry.ino = decoder.Get<uint64_t>();
    entry.mode = decoder.Get<uint32_t>();
    entry.uid = decoder.Get<uint32_t>();
    entry.gid = decoder.Get<uint32_t>();
    entry.size = decoder.Get<uint64_t>();
    entry.mtime = DecodeTime(decoder);
  }
  const size_t size = in.size() - decoder.remaining();
  const auto checksum = decoder.Get<uint64_t>();
  if (!is_image || !decoder.ok() || decoder.remaining() != 0 ||
      checksum != Checksum(in.first(size))) {
    return Fail(EBADMSG, "damaged commit image");
  }
  return image;
}

}  // namespace txfs

#include "fs/commit/commit_image.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>

#include "fs/base/owner_access.h"
#include "fs/vault/vaults.h"
#include "journal/frame.h"
#include "journal/support/checksum.h"
#include "journal/support/pieces.h"
#include "journal/support/stored.h"

namespace txfs {
namespace {

constexpr FileFrame kImageFrame = {
    .magic = "TXFSIMG\n", .version = 1, .what = "commit image"};

ImageEntry EntryOf(const std::string& path, const struct stat& st) {
  return {.path = path,
          .exists = true,
          .ino = st.st_ino,
          .mode = st.st_mode,
          .nlink = static_cast<uint32_t>(st.st_nlink),
          .uid = st.st_uid,
          .gid = st.st_gid,
          .size = S_ISDIR(st.st_mode) ? 0 : static_cast<uint64_t>(st.st_size),
          .mtime = Timestamp::From(st.st_mtim),
          .ctime = Timestamp::From(st.st_ctim)};
}

/// A commit may leave a directory that denies its owner what an image takes.
Result<struct stat> StatAsOwner(const BaseDirectory& base,
                                const std::string& path) {
  return AsOwner(base, std::string(ParentPath(path)), [&] {
    return IsBeside(Spot::Base(path)) ? base.StatReserved(path)
                                      : base.Stat(path);
  });
}

Result<std::vector<BaseEntry>> ListAsOwner(const BaseDirectory& base,
                                           const std::string& path) {
  return AsOwner(base, path, [&] { return base.List(path); });
}

/// Of the tracked attributes; 0 when there are none. What cannot be read, of a
/// file that its mode closes, counts as empty.
uint64_t XattrChecksum(const BaseDirectory& base, const ImageEntry& entry) {
  if (S_ISLNK(entry.mode)) return 0;
  const std::string parent(ParentPath(entry.path));
  auto names =
      AsOwner(base, parent, [&] { return base.ListXattrs(entry.path); });
  if (!names || names->empty()) return 0;
  std::ranges::sort(*names);
  Bytes bytes;
  Encoder out(bytes);
  for (const std::string& name : *names) {
    out.PutString(name);
    const auto value =
        AsOwner(base, parent, [&] { return base.GetXattr(entry.path, name); });
    out.PutString(value.value_or(""));
  }
  return Checksum(bytes);
}

Result<ContentHash> HashOf(const BaseDirectory& base, const ImageEntry& entry) {
  const SharedFd fd = TRY(AsOwner(base, std::string(ParentPath(entry.path)),
                                  [&] { return base.OpenFile(entry.path); }));
  // To look at a file is not to use it. Only its owner may say so.
  std::ignore = ::fcntl(fd->get(), F_SETFL, O_NOATIME);
  return HashOfFile(fd->get(), entry.size);
}

Result<ImageEntry> LookAt(const BaseDirectory& base, const std::string& path) {
  const auto st = StatAsOwner(base, path);
  if (st) return EntryOf(path, *st);
  if (st.error().code != ENOENT) return std::unexpected(st.error());
  return ImageEntry{.path = path};
}

class ImageTaker {
 public:
  ImageTaker(const BaseDirectory& base, bool is_undo)
      : base_(base), is_undo_(is_undo) {}

  Result<CommitImage> Take(const CommitSteps& steps) {
    for (const CommitStep& step : steps) NoteOrigin(step);
    for (const CommitStep& step : steps) TRY(TakeStep(step));
    // An undo renames these back: that they are there is looked at here.
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!IsBeside(VaultSlot::kTaken, steps[i].to)) continue;
      TRY(TakeTree(PlaceAfter(steps, i).path, false, false));
    }
    CommitImage image;
    for (auto& [path, entry] : entries_) image.push_back(std::move(entry));
    return image;
  }

 private:
  /// What is new at a path, and what was only moved there.
  void NoteOrigin(const CommitStep& step) {
    switch (step.kind) {
      case StepKind::kMove:
        if (IsKeeping(step.to)) {
          detached_.insert(SlotOf(step.to));
        } else if (detached_.contains(SlotOf(step.from))) {
          old_.insert(step.to.path);
        }
        return;
      case StepKind::kLink:
        if (!step.to.vault) old_.insert(step.to.path);
        return;
      case StepKind::kPatch:
        patched_.insert(step.ino);
        return;
      default:
        return;
    }
  }

  static std::string SlotOf(const Spot& spot) {
    // A directory above it may have moved in between.
    return spot.vault ? spot.path : std::string(BaseName(spot.path));
  }

  Status TakeStep(const CommitStep& step) {
    switch (step.kind) {
      case StepKind::kMove:
        if (IsKeeping(step.to)) return TakeGone(step.from.path);
        return TakeMoved(step);
      case StepKind::kUnlink:
        return step.to.vault ? Status() : TakeGone(step.to.path);
      case StepKind::kLink:
        return step.to.vault ? Status() : TakeTree(step.to.path, false, false);
      case StepKind::kExchange:
        return TakeTree(step.to.path, false, true);
      case StepKind::kAttributes:
        return step.set_after ? TakeTree(step.to.path, false, false) : Status();
      case StepKind::kPatch:
        return {};  // its attributes are set where the file is in the end
    }
    return {};
  }

  Status TakeMoved(const CommitStep& step) {
    const bool is_new = !detached_.contains(SlotOf(step.from));
    return TakeTree(step.to.path, is_new, is_new);
  }

  Status TakeGone(const std::string& path) {
    const auto st = StatAsOwner(base_, path);
    // What has the name now is the business of the step that brought it.
    if (st) return {};
    if (st.error().code != ENOENT) return std::unexpected(st.error());
    entries_.try_emplace(path, ImageEntry{.path = path});
    return {};
  }

  /// `whole`: everything in it is the commit's doing; `fresh`: so is the
  /// content, but of what it only moved there.
  Status TakeTree(const std::string& path, bool whole, bool fresh) {
    // No recursion: a tree may be deeper than the stack.
    std::vector<Waiting> waiting{{path, fresh}};
    while (!waiting.empty()) {
      const Waiting next = std::move(waiting.back());
      waiting.pop_back();
      const bool is_top = next.path.size() == path.size();
      if (!is_top && entries_.contains(next.path)) continue;
      TRY(TakeObject(next.path, whole, next.fresh, waiting));
    }
    return {};
  }

  struct Waiting {
    std::string path;
    bool fresh;
  };
  /// What is in it comes to `waiting`, if it is to be taken, too.
  Status TakeObject(const std::string& path, bool whole, bool fresh,
                    std::vector<Waiting>& waiting) {
    const auto st = StatAsOwner(base_, path);
    if (!st && st.error().code == ENOENT) return TakeGone(path);
    if (!st) return std::unexpected(st.error());
    const bool is_directory = S_ISDIR(st->st_mode);
    fresh = fresh && !old_.contains(path);
    ImageEntry entry = EntryOf(path, *st);
    entry.xattrs = XattrChecksum(base_, entry);
    if (const auto known = entries_.find(path); known != entries_.end()) {
      entry.whole = known->second.whole;
      entry.content = known->second.content;
      entry.hash = known->second.hash;
    }
    entry.whole = is_directory && (entry.whole || whole);
    if (fresh || patched_.contains(entry.ino)) TakeContent(entry);
    std::vector<BaseEntry> children;
    if (whole && is_directory) {
      auto listed = ListAsOwner(base_, path);
      // It is another user's, and may not be looked into.
      if (!listed && listed.error().code == EACCES) {
        entry.whole = false;
      } else {
        children = TRY(std::move(listed));
      }
    }
    entries_.insert_or_assign(path, entry);
    for (const BaseEntry& child : children) {
      waiting.push_back({JoinPath(path, child.name), fresh});
    }
    return {};
  }

  void TakeContent(ImageEntry& entry) const {
    if (is_undo_ || !S_ISREG(entry.mode)) return;
    if (entry.content != ImageContent::kNotOurs) return;  // known already
    entry.content = ImageContent::kTooLarge;
    if (entry.size > kMaxImageContent) return;
    // What is closed to its owner now is as good as too large.
    if (const auto hash = HashOf(base_, entry)) {
      entry.content = ImageContent::kHashed;
      entry.hash = *hash;
    }
  }

  const BaseDirectory& base_;
  const bool is_undo_;
  std::set<std::string> detached_;  ///< slots
  std::set<std::string> old_;       ///< paths of what had another name before
  std::set<uint64_t> patched_;      ///< st_ino
  std::map<std::string, ImageEntry> entries_;
};

class ImageComparer {
 public:
  ImageComparer(const BaseDirectory& base, const IsOurDoing& is_ours)
      : base_(base), is_ours_(is_ours) {}

  Result<std::vector<Conflict>> Compare(const CommitImage& image) {
    std::set<std::string_view> known;
    for (const ImageEntry& entry : image) known.insert(entry.path);
    for (const ImageEntry& then : image) {
      if (!TRY(CompareEntry(then)) || !then.whole) continue;
      for (const BaseEntry& child : TRY(ListAsOwner(base_, then.path))) {
        const std::string path = JoinPath(then.path, child.name);
        if (!known.contains(path)) Add(path, "created");
      }
    }
    return std::move(conflicts_);
  }

 private:
  void Add(const std::string& path, std::string reason, std::string note = {}) {
    conflicts_.push_back({.path = ShownPath(path),
                          .reason = std::move(reason),
                          .ours = {},
                          .note = std::move(note)});
  }

  /// Whether `then` is what is there.
  Result<bool> CompareEntry(const ImageEntry& then) {
    const auto seen = LookAt(base_, then.path);
    if (!seen && seen.error().code == EACCES) {
      Add(then.path, kClosed, kClosedNote);
      return false;
    }
    const ImageEntry now = TRY(seen);
    const size_t before = conflicts_.size();
    if (then.exists != now.exists) {
      Add(then.path, then.exists ? "deleted" : "created");
    } else if (!IsSame(then, now)) {
      Add(then.path, "changed");
    } else if (then.exists && then.ctime != now.ctime) {
      TRY(CompareClosely(then, now));
    }
    return conflicts_.size() == before;
  }

  static bool IsSame(const ImageEntry& then, const ImageEntry& now) {
    return then.ino == now.ino && then.mode == now.mode &&
           then.uid == now.uid && then.gid == now.gid &&
           then.size == now.size &&
           (S_ISDIR(then.mode) || then.mtime == now.mtime);
  }

  /// Nobody sets a ctime back, but much that changes nothing else sets it.
  Status CompareClosely(const ImageEntry& then, const ImageEntry& now) {
    if (then.xattrs != XattrChecksum(base_, now)) {
      Add(then.path, "attributes changed");
      return {};
    }
    switch (then.content) {
      case ImageContent::kNotOurs:
        return {};
      case ImageContent::kHashed: {
        const auto hash = HashOf(base_, now);
        if (!hash || *hash != then.hash) Add(then.path, "changed");
        return {};
      }
      case ImageContent::kTooLarge:
        // The trash and vaults have names of files, and let go of them.
        if (!is_ours_ || then.nlink != now.nlink) return {};
        if (TRY(is_ours_(now.ino, now.ctime))) return {};
        Add(then.path, "changed", "only its ctime differs");
        return {};
    }
    return {};
  }

  const BaseDirectory& base_;
  const IsOurDoing& is_ours_;
  std::vector<Conflict> conflicts_;
};

}  // namespace

Result<CommitImage> TakeImage(const BaseDirectory& base,
                              const CommitSteps& steps, bool is_undo) {
  return ImageTaker(base, is_undo).Take(steps);
}

Result<std::vector<Conflict>> CompareImage(const BaseDirectory& base,
                                           const CommitImage& image,
                                           const IsOurDoing& is_ours) {
  return ImageComparer(base, is_ours).Compare(image);
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
    const auto seen = LookAt(base, step.from.path);
    // The comparison reports it.
    if (!seen && seen.error().code == EACCES) continue;
    const ImageEntry now = TRY(seen);
    if (now.mtime == then->second->mtime) continue;
    step.set_after->mtime = now.mtime;
    // Undoing the undo keeps it, too.
    if (step.set_before) step.set_before->mtime = now.mtime;
  }
  return {};
}

Bytes EncodeImage(const CommitImage& image) {
  Bytes bytes;
  Encoder out(bytes);
  out.Put(static_cast<uint32_t>(image.size()));
  for (const ImageEntry& entry : image) {
    out.PutString(entry.path);
    out.Put(static_cast<uint8_t>(entry.exists));
    out.Put(static_cast<uint8_t>(entry.whole));
    out.Put(entry.ino);
    out.Put(entry.mode);
    out.Put(entry.nlink);
    out.Put(entry.uid);
    out.Put(entry.gid);
    out.Put(entry.size);
    EncodeTime(entry.mtime, out);
    EncodeTime(entry.ctime, out);
    out.Put(entry.xattrs);
    out.Put(static_cast<uint8_t>(entry.content));
    out.Put(entry.hash.low);
    out.Put(entry.hash.high);
  }
  return PutInFrame(kImageFrame, bytes);
}

Result<CommitImage> DecodeImage(ByteSpan in) {
  Decoder decoder(TRY(TakeFromFrame(kImageFrame, in)));
  CommitImage image;
  const auto count = decoder.Get<uint32_t>();
  for (uint32_t i = 0; i < count && decoder.ok(); ++i) {
    ImageEntry& entry = image.emplace_back();
    entry.path = decoder.GetString();
    entry.exists = decoder.GetBool();
    entry.whole = decoder.GetBool();
    entry.ino = decoder.Get<uint64_t>();
    entry.mode = decoder.Get<uint32_t>();
    entry.nlink = decoder.Get<uint32_t>();
    entry.uid = decoder.Get<uint32_t>();
    entry.gid = decoder.Get<uint32_t>();
    entry.size = decoder.Get<uint64_t>();
    entry.mtime = DecodeTime(decoder);
    entry.ctime = DecodeTime(decoder);
    entry.xattrs = decoder.Get<uint64_t>();
    entry.content = static_cast<ImageContent>(decoder.Get<uint8_t>());
    if (entry.content > ImageContent::kTooLarge) decoder.SetBad();
    entry.hash.low = decoder.Get<uint64_t>();
    entry.hash.high = decoder.Get<uint64_t>();
    const bool in_order =
        image.size() == 1 || image[image.size() - 2].path < entry.path;
    const bool means = entry.exists ? IsModeOfObject(entry.mode)
                                    : entry == ImageEntry{.path = entry.path};
    if (!in_order || !means || !IsPathBelow(entry.path)) decoder.SetBad();
  }
  if (!decoder.ok() || decoder.remaining() != 0) return Damaged(kImageFrame);
  return image;
}

}  // namespace txfs

// Tables of which some bytes are other ones: each five bytes of the input say
// which, four where and one what. What CheckPages lets pass LMDB can read and
// write.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "journal/db.h"
#include "journal/image.h"
#include "journal/support/file.h"
#include "tests/cli/temp_tree.h"
#include "tests/fuzz/fuzz.h"

namespace txfs {
namespace {

using fuzz::Demand;

constexpr uint64_t kMapBytes = 1 << 20;

Status Fill(Db& db, uint64_t first, uint64_t count) {
  return db.Write([&](Tables& tables) -> Status {
    for (uint64_t i = first; i < first + count; ++i) {
      const Ino ino{i + 2};
      tables.SetInode(ino, InodeRecord{.attr = {.nlink = 1}});
      tables.SetDentry(kRootIno, "name " + std::to_string(i),
                       {DentryKind::kInode, ino});
      const std::string value(i == first ? 9000 : 40, 'v');
      tables.PutLog(Lsn{i + 1}, AsBytes(value));
      if (i % 3 == 0) tables.SetXattr(ino, "user.a", value);
    }
    return {};
  });
}

/// A directory with tables of several pages of every kind, and the same as
/// bytes.
class Template {
 public:
  Template() : dir_(::open(tree_.path().c_str(), O_RDONLY | O_DIRECTORY)) {
    auto db = Db::Create(dir_.get(), kMapBytes, Io::System());
    Demand(db && Fill(**db, 0, 150), "there are tables");
    // What is free, and what is not where it was.
    const auto erase = [](Tables& tables) -> Status {
      for (uint64_t i = 20; i < 120; ++i) tables.SetInode(Ino{i}, std::nullopt);
      return {};
    };
    Demand((*db)->Write(erase) && Fill(**db, 150, 20) && (*db)->Sync(),
           "they change");
    db->reset();
    auto bytes = ReadWholeFile(dir_.get(), "db/data.mdb");
    Demand(bytes.has_value(), "they can be read");
    bytes_ = *std::move(bytes);
    bytes_.resize(bytes_.find_last_not_of('\0') / 4096 * 4096 + 4096);
  }

  [[nodiscard]] int dir() const { return dir_.get(); }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  cli::TempTree tree_;
  UniqueFd dir_;
  std::string bytes_;
};

void Run(ByteSpan in) {
  static const Template sound;
  std::string bytes = sound.bytes();
  Decoder patches(in);
  while (patches.remaining() >= 5) {
    const auto at = patches.Get<uint32_t>();
    bytes[at % bytes.size()] = static_cast<char>(patches.Get<uint8_t>());
  }
  const UniqueFd file(
      ::openat(sound.dir(), "db/data.mdb", O_WRONLY | O_TRUNC | O_CLOEXEC));
  Demand(WriteFully(file.get(), 0, AsBytes(bytes)).has_value(),
         "it is written");
  // As if a batch had made room at its end.
  Demand(::ftruncate(file.get(), static_cast<off_t>(bytes.size() + 65536)) == 0,
         "it is long enough");
  auto db = Db::Open(sound.dir(), kMapBytes, Io::System());
  if (!db) return;
  Image image;
  std::ignore = (*db)->Load(image);
  std::ignore = (*db)->ReadLog(Lsn{1}, 1000);
  std::ignore = (*db)->ReadSavepoints();
  std::ignore = (*db)->ReadDenials();
  std::ignore = Fill(**db, 1000, 50);
  const auto erase = [](Tables& tables) -> Status {
    for (uint64_t i = 0; i < 170; ++i) tables.SetInode(Ino{i}, std::nullopt);
    return {};
  };
  std::ignore = (*db)->Write(erase);
  std::ignore = Fill(**db, 2000, 50);
  std::ignore = (*db)->Sync();
}

}  // namespace
}  // namespace txfs

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  txfs::Run(txfs::AsBytes(txfs::fuzz::TextOf(data, size)));
  return 0;
}

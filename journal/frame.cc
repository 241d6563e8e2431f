#include "journal/frame.h"

#include <string>

#include "journal/support/checksum.h"

namespace txfs {

Bytes PutInFrame(const FileFrame& frame, ByteSpan content) {
  Bytes bytes;
  bytes.reserve(frame.magic.size() + sizeof frame.version + content.size() +
                sizeof(uint64_t));
  Encoder out(bytes);
  out.PutRaw(AsBytes(frame.magic));
  out.Put(frame.version);
  out.PutRaw(content);
  out.Put(Checksum(bytes));
  return bytes;
}

Result<ByteSpan> TakeFromFrame(const FileFrame& frame, ByteSpan bytes) {
  Decoder in(bytes);
  if (AsText(in.GetRaw(frame.magic.size())) != frame.magic) {
    return Damaged(frame);
  }
  if (in.Get<uint32_t>() > frame.version) {
    return Fail(EPROTONOSUPPORT,
                std::string(frame.what) + " of a newer version",
                "use the newer txfs that wrote it");
  }
  uint64_t checksum = 0;
  if (in.remaining() < sizeof checksum) return Damaged(frame);
  const ByteSpan content = in.GetRaw(in.remaining() - sizeof checksum);
  checksum = in.Get<uint64_t>();
  if (checksum != Checksum(bytes.first(bytes.size() - sizeof checksum))) {
    return Damaged(frame);
  }
  return content;
}

uint32_t VersionIn(const FileFrame& frame, ByteSpan bytes) {
  return Decoder(bytes.subspan(frame.magic.size())).Get<uint32_t>();
}

std::unexpected<Error> Damaged(const FileFrame& frame) {
  return Fail(EBADMSG, "damaged " + std::string(frame.what));
}

}  // namespace txfs

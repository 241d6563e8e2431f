#include "fs/tree/own_xattrs.h"

#include <optional>
#include <set>

#include "fs/host/xattrs.h"
#include "fs/posix/acl.h"
#include "journal/support/bytes.h"
#include "journal/support/checksum.h"

namespace txfs {
namespace {

using Sums = std::map<std::string, uint64_t, std::less<>>;

/// None: unknown or damaged.
std::optional<Sums> DecodeBefore(const Inode& inode) {
  const auto found = inode.own->xattrs->find(kXattrsBefore);
  if (found == inode.own->xattrs->end()) return std::nullopt;
  Decoder in(AsBytes(found->second));
  Sums sums;
  const auto count = in.Get<uint32_t>();
  for (uint32_t i = 0; i < count && in.ok(); ++i) {
    std::string name(in.GetString());
    sums[std::move(name)] = in.Get<uint64_t>();
  }
  if (!in.ok() || in.remaining() != 0) return std::nullopt;
  return sums;
}

/// None: no such attribute.
std::optional<uint64_t> SumOf(const XattrMap& xattrs, const std::string& name) {
  const auto found = xattrs.find(name);
  if (found == xattrs.end()) return std::nullopt;
  return Checksum(AsBytes(found->second));
}
std::optional<uint64_t> SumOf(const Sums& sums, const std::string& name) {
  const auto found = sums.find(name);
  if (found == sums.end()) return std::nullopt;
  return found->second;
}

/// The attributes that the transaction changed or removed.
std::set<std::string> ChangedNames(const XattrMap& own, const Sums& before) {
  std::set<std::string> changed;
  for (const auto& [name, value] : own) {
    if (SumOf(own, name) != SumOf(before, name)) changed.insert(name);
  }
  for (const auto& [name, sum] : before) {
    if (!own.contains(name)) changed.insert(name);
  }
  return changed;
}

}  // namespace

std::string EncodeXattrsBefore(const XattrMap& base) {
  Bytes bytes;
  Encoder out(bytes);
  out.Put(static_cast<uint32_t>(base.size()));
  for (const auto& [name, value] : base) {
    out.PutString(name);
    out.Put(Checksum(AsBytes(value)));
  }
  return std::string(AsText(bytes));
}

XattrMap OwnXattrs(const Inode& inode) {
  XattrMap own(inode.own->xattrs->begin(), inode.own->xattrs->end());
  own.erase(std::string(kXattrsBefore));
  const auto acl = own.find(kAccessAcl);
  if (acl != own.end()) {
    acl->second = AclWithMode(std::move(acl->second), inode.attr().mode);
  }
  return own;
}

XattrMap MergeXattrs(const Inode& inode, XattrMap base) {
  XattrMap own = OwnXattrs(inode);
  const auto before = DecodeBefore(inode);
  if (!before) {
    // An earlier version recorded no access control lists.
    std::erase_if(base,
                  [](const auto& xattr) { return !IsAclName(xattr.first); });
    own.merge(std::move(base));
    return own;
  }
  for (const std::string& name : ChangedNames(own, *before)) {
    base.erase(name);
    if (auto changed = own.extract(name)) base.insert(std::move(changed));
  }
  return base;
}

bool XattrsClash(const Inode& inode, const XattrMap& base) {
  const auto before = DecodeBefore(inode);
  if (!before) return false;
  const XattrMap own = OwnXattrs(inode);
  for (const std::string& name : ChangedNames(own, *before)) {
    const auto now = SumOf(base, name);
    if (now != SumOf(*before, name) && now != SumOf(own, name)) return true;
  }
  return false;
}

}  // namespace txfs

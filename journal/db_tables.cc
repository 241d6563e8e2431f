// Tables: one batch of changes to them.
#include "journal/db.h"
#include "journal/db_val.h"
#include "journal/rows.h"

namespace txfs {

void Tables::Put(unsigned int table, ByteSpan key, ByteSpan value,
                 unsigned int flags) {
  if (code_ != 0) return;
  MDB_val k = ToVal(key);
  MDB_val v = ToVal(value);
  code_ = mdb_put(txn_, table, &k, &v, flags);
}

void Tables::Erase(unsigned int table, ByteSpan key) {
  if (code_ != 0) return;
  MDB_val k = ToVal(key);
  const int code = mdb_del(txn_, table, &k, nullptr);
  if (code != MDB_NOTFOUND) code_ = code;
}

void Tables::SetInode(Ino ino, const std::optional<InodeRecord>& record) {
  if (record) SetAttr(ino, record->attr);
  key_.clear();
  AppendKey(key_, Raw(ino));
  if (!record) Erase(handles_.inode, key_);
  if (!record || (!record->base && record->symlink.empty())) {
    Erase(handles_.origin, key_);
    return;
  }
  value_.clear();
  Encoder encoder(value_);
  EncodeOrigin(record->base, record->symlink, encoder);
  Put(handles_.origin, key_, value_);
}

void Tables::SetAttr(Ino ino, const Attr& attr) {
  key_.clear();
  AppendKey(key_, Raw(ino));
  value_.clear();
  Encoder encoder(value_);
  EncodeAttr(attr, encoder);
  Put(handles_.inode, key_, value_);
}

void Tables::SetDentry(Ino parent, const std::string& name,
                       const DentryValue& value) {
  key_.clear();
  AppendKey(key_, Raw(parent));
  Encoder(key_).PutRaw(AsBytes(name));
  if (value.kind == DentryKind::kAbsent) {
    Erase(handles_.dentry, key_);
    return;
  }
  value_.clear();
  EncodeDentryValue(value, value_);
  Put(handles_.dentry, key_, value_);
}

void Tables::EraseExtent(Ino ino, const Extent& extent) {
  key_.clear();
  AppendKey(key_, Raw(ino));
  AppendKey(key_, extent.offset);
  Erase(handles_.extent, key_);
}

void Tables::PutExtent(Ino ino, const Extent& extent) {
  key_.clear();
  AppendKey(key_, Raw(ino));
  AppendKey(key_, extent.offset);
  value_.clear();
  EncodeExtentValue(extent, value_);
  Put(handles_.extent, key_, value_);
}

void Tables::SetXattr(Ino ino, const std::string& name,
                      const std::optional<std::string>& value) {
  key_.clear();
  AppendKey(key_, Raw(ino));
  Encoder(key_).PutRaw(AsBytes(name));
  if (value) {
    Put(handles_.xattr, key_, AsBytes(*value));
  } else {
    Erase(handles_.xattr, key_);
  }
}

void Tables::PutLog(Lsn lsn, ByteSpan change) {
  key_.clear();
  AppendKey(key_, Raw(lsn));
  Put(handles_.log, key_, change, MDB_APPEND);
}

void Tables::PutSavepoint(const Savepoint& savepoint) {
  key_.clear();
  AppendKey(key_, Raw(savepoint.lsn));
  value_.clear();
  EncodeSavepointValue(savepoint, value_);
  Put(handles_.savepoint, key_, value_);
}

void Tables::EraseSavepoint(Lsn lsn) {
  key_.clear();
  AppendKey(key_, Raw(lsn));
  Erase(handles_.savepoint, key_);
}

void Tables::PutDenial(const LogEntry& denial) {
  key_.clear();
  AppendKey(key_, Raw(denial.lsn));
  value_.clear();
  EncodeDenialValue(denial, value_);
  Put(handles_.denial, key_, value_);
}

void Tables::EraseDenial(Lsn lsn) {
  key_.clear();
  AppendKey(key_, Raw(lsn));
  Erase(handles_.denial, key_);
}

void Tables::PutRule(const DeniedRule& rule) {
  key_.clear();
  value_.clear();
  EncodeRuleRow(rule, key_, value_);
  Put(handles_.rule, key_, value_);
}

void Tables::PutCursor(const IntakeCursor& cursor) {
  Put(handles_.meta, AsBytes(kCursorKey), EncodeCursor(cursor));
}

void Tables::PutMeta(const std::string& key, std::string_view value) {
  Put(handles_.meta, AsBytes(std::string(kFactPrefix) + key), AsBytes(value));
}

void Tables::EraseMeta(const std::string& key) {
  Erase(handles_.meta, AsBytes(std::string(kFactPrefix) + key));
}

void Tables::PutFormat(uint32_t version) {
  value_.clear();
  Encoder(value_).Put(version);
  Put(handles_.meta, AsBytes(kFormatKey), value_);
}

}  // namespace txfs

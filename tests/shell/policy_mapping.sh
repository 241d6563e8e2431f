#!/bin/sh
# A policy about users: who stored through a mapping is not known when the
# kernel writes it back.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3

mkdir ws mnt
echo content | tee ws/hers ws/ours >ws/anyones
cat >policy.toml <<END
schema = 1

[[fs]]
id = "hers"
path = "/hers"
uid = 54321
reason = "it is hers"
suggest = "ask her"

[[fs]]
id = "ours"
path = "/ours"
unless = { uid = $(id -u) }
reason = "it is ours"
suggest = "ask us"
END
txfs mount ws mnt --policy policy.toml

# attempt NAME: what a write is answered, and what a store through a mapping.
attempt() {
  timeout 60 python3 -c "
import errno, mmap, os
def tried(work):
    try:
        work()
        return 'ok'
    except OSError as e:
        return errno.errorcode[e.errno]
with open('mnt/$1', 'r+b') as f, mmap.mmap(f.fileno(), 0) as m:
    written = tried(lambda: os.pwrite(f.fileno(), b'x', 0))
    m[1:2] = b'y'
    print(written, tried(m.flush))"
}
equal "ok EPERM" "$(attempt hers)" "a rule for another user"
equal "ok EPERM" "$(attempt ours)" "a rule for all others"
equal "ok ok" "$(attempt anyones)" "no rule"
contains "$(txfs -C mnt log --denied)" "write  hers  EPERM by hers"
contains "$(txfs -C mnt log --denied)" "write  ours  EPERM by ours"
txfs -C mnt fsck
txfs umount mnt

#!/bin/sh
# A disk that is full to its last block by names, renames or tiny writes through
# the mount: discard works all the same, mounted and not, and so does the mount
# afterwards.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs_root
needs mkfs.ext4 python3
make_workspace
mkdir mnt disk
tear_down() {
  txfs umount mnt 2>/dev/null || true
  umount disk 2>/dev/null || umount -l disk 2>/dev/null || true
}
trap tear_down EXIT

# new_disk KIND: an empty small filesystem with the directory `store`.
new_disk() {
  if [ "$1" = tmpfs ]; then
    mount -t tmpfs -o size=40m,mode=755 tmpfs disk
  else
    # What another test's namespace still has mounted is another file.
    rm -f image
    truncate -s "$2" image
    mkfs.ext4 -q -F -m 0 image
    mount -o loop image disk 2>err || skip "no loop device: $(cat err)"
  fi
  mkdir disk/store
}

# take_all: no block is left, whatever gave some back a moment ago.
take_all() {
  python3 - disk/filler <<'END'
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
for size in (1 << 20, 4096, 512, 1):
    try:
        while True:
            os.write(fd, b"x" * size)
            os.fsync(fd)
    except OSError:
        pass
END
}

# fill HOW: changes through the mount, until several in a row are refused; as
# rewrites take little, so many of these.
fill() {
  python3 - "$1" mnt <<'END'
import os, sys, time
how, mnt = sys.argv[1:]
name = mnt + "/" + "n" * 200
open(name + "0", "w").close()
fd = os.open(mnt + "/tiny", os.O_WRONLY | os.O_CREAT, 0o644)

def change(i):
    if how == "names":
        open("%s/%0200d" % (mnt, i), "x").close()
    elif how == "renames":
        os.rename(name + str(i), name + str(i + 1))
    else:
        os.pwrite(fd, os.urandom(1), i * 2 % (1 << 20))

refused = 0
i = 0
while refused < 20 and (how != "tiny" or i < 5000):
    try:
        change(i)
        i += 1
        refused = 0
    except OSError as error:
        if error.errno != 28:
            raise
        refused += 1
END
}

works() {
  equal "$(ls ws)" "$(ls mnt)" "the mount shows the base after a discard"
  tries=0
  until echo again >mnt/again 2>err; do
    tries=$((tries + 1))
    [ $tries -lt 100 ] || fail "$1: after a discard nothing can be changed: $(cat err)"
  done
  equal again "$(cat mnt/again)" "what was written after a discard"
  txfs -C mnt discard
}

for disk in "ext4 44M" tmpfs; do
  hows=$(some names renames tiny)
  [ "$disk" != tmpfs ] || hows=names
  for how in $hows; do
    # shellcheck disable=SC2086 # words
    new_disk $disk
    txfs --store disk/store mount ws mnt
    fill $how
    take_all
    txfs -C mnt discard
    works "$disk $how mounted"
    rm disk/filler
    txfs -C mnt fsck >/dev/null
    txfs umount mnt

    txfs --store disk/store mount ws mnt
    fill $how
    take_all
    txfs umount mnt
    take_all
    txfs --store "$PWD/disk/store" discard
    rm disk/filler
    txfs --store disk/store mount ws mnt
    works "$disk $how unmounted"
    txfs -C mnt fsck >/dev/null
    txfs umount mnt
    umount disk
  done
done

#!/bin/sh
# A chain of directories deeper than a path may be long: every command goes
# through it, made in the transaction, and in the base and changed at each level.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs python3
depth=500
mkdir ws mnt

# chain ROOT HOW: `make`s a chain of directories with a file in each, or changes
# each file of one.
chain() {
  python3 - "$1" "$2" $depth <<'END'
import os, sys
root, how, depth = sys.argv[1], sys.argv[2], int(sys.argv[3])
directory = os.open(root, os.O_RDONLY)
for level in range(depth):
    if how == "make":
        os.mkdir("d", dir_fd=directory)
    below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    os.close(directory)
    directory = below
    fd = os.open("f", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=directory)
    os.write(fd, b"%s %d\n" % (how.encode(), level))
    os.close(fd)
END
}
# count ROOT: how many levels and files there are.
count() {
  python3 - "$1" <<'END'
import os, sys
directory = os.open(sys.argv[1], os.O_RDONLY)
levels = files = 0
while True:
    names = os.listdir(directory)
    files += "f" in names
    if "d" not in names:
        break
    below = os.open("d", os.O_RDONLY | os.O_DIRECTORY, dir_fd=directory)
    os.close(directory)
    directory = below
    levels += 1
print(levels, files)
END
}

txfs mount ws mnt
chain mnt make
txfs -C mnt status >/dev/null
equal $((depth * 2)) "$(txfs -C mnt diff --name-status | wc -l)" "names in the diff"
txfs -C mnt diff >/dev/null
txfs -C mnt diff --stat >/dev/null
txfs -C mnt log >/dev/null
txfs -C mnt savepoint here
echo more >mnt/more
txfs -C mnt rollback here
# What is staged goes to the base in pieces, not each directory by itself.
[ "$(txfs -C mnt commit --dry-run | wc -l)" -lt $((depth / 10)) ] ||
  fail "a step for each directory"
txfs -C mnt discard
equal "0 0" "$(count mnt)" "after a discard"

chain mnt make
txfs -C mnt commit -m deep
equal "$depth $depth" "$(count ws)" "what was committed"
txfs -C mnt undo
equal "0 0" "$(count ws)" "what was undone"
id=$(txfs -C mnt list --json | json '[t["id"] for t in d if t["kind"] == "undo"][-1]')
txfs -C mnt undo "$id"
equal "$depth $depth" "$(count mnt)" "what was done again"

chain mnt change
equal $depth "$(txfs -C mnt diff --name-status | wc -l)" "what was changed"
txfs umount mnt
txfs mount ws mnt
equal $depth "$(txfs -C mnt diff --name-status | wc -l)" "what was changed, after a remount"
txfs -C mnt discard d/d/d/d
equal 3 "$(txfs -C mnt diff --name-status | wc -l)" "what a discard of a part left"
chain mnt change
txfs -C mnt commit -m changed
equal "change 0" "$(cat ws/d/f)" "what was committed of a change"
txfs -C mnt undo
equal "make 0" "$(cat ws/d/f)" "what was undone of a change"
mv mnt/d mnt/moved
txfs -C mnt status >/dev/null
txfs -C mnt diff --name-status >/dev/null
txfs -C mnt commit -m moved
txfs -C mnt fsck >/dev/null
txfs -C mnt gc --keep-commits 0 >/dev/null
txfs umount mnt

#!/bin/sh
# A transaction's life: mount, work, look, unmount, resume, commit, discard.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt
cp -a ws before

txfs mount ws mnt
mountpoint -q mnt || fail "nothing is mounted"
equal fuse.txfs "$(findmnt -no FSTYPE mnt)" "type in the mount table"
equal "$PWD/ws" "$(findmnt -no SOURCE mnt)" "source in the mount table"
same_tree before mnt
[ ! -e mnt/.txfs/FORMAT ] || fail "the store is visible"
[ ! -e ws/.txfs ] || fail "something is in the workspace"
equal 700 "$(stat -c %a "$(store_of ws)")" "mode of the store"

echo changed >>mnt/docs/README
mkdir mnt/new
echo new >mnt/new/file
mv mnt/src mnt/source
rm mnt/zeros
chmod 700 mnt/run.sh
same_tree before ws manifest_with_times

# From the mount, from a directory in it, from the workspace, from elsewhere.
for where in mnt mnt/docs ws ws/docs; do
  contains "$(cd "$where" && txfs status)" "$PWD/mnt"
  contains "$(txfs -C "$where" status)" "$PWD/mnt"
  contains "$(txfs -C "$where" diff --name-status)" docs/README
done
id=$(txfs -C mnt status --json | json 'd["id"]')
equal 12 "${#id}" "length of the id"
equal active "$(txfs -C mnt status --json | json 'd["state"]')" "state"
equal "$PWD/ws" "$(txfs -C mnt status --json | json 'd["workspace"]')" workspace
equal "$PWD/mnt" "$(txfs -C ws status --json | json 'd["mountpoint"]')" mountpoint
pid=$(txfs -C mnt status --json | json 'd["pid"]')
contains "$(readlink "/proc/$pid/exe")" txfs
equal True "$(txfs -C mnt status --json | json 'd["store_bytes"] > 0')" store_bytes
equal True "$(txfs -C mnt status --json | json 'd["changes"] > 0')" changes

cp -a mnt after
txfs umount mnt
! mountpoint -q mnt || fail "still mounted"
[ -z "$(ls -A mnt)" ] || fail "something is left in the mountpoint"
same_tree before ws manifest_with_times

# Not mounted, the commands work on the transaction that was left open.
contains "$(txfs -C ws status)" "$id"
contains "$(cd ws/docs && txfs status)" "$id"
equal "$id" "$(txfs -C ws status --json | json 'd["id"]')" "id without a mount"
equal active "$(txfs -C ws list --json | json 'd[-1]["state"]')" "state in the list"
contains "$(txfs -C ws diff)" "+changed"

txfs mount ws mnt
equal "$id" "$(txfs -C mnt status --json | json 'd["id"]')" "id after resuming"
same_tree after mnt manifest_with_times
txfs -C mnt discard
same_tree before mnt
next=$(txfs -C mnt status --json | json 'd["id"]')
[ "$id" != "$next" ] || fail "discard began no new transaction"

echo second >mnt/second
txfs -C mnt commit -m "the second" >out
contains "$(cat out)" "$next"
equal second "$(cat ws/second)" "what was committed"
states=$(txfs -C ws list --json | json '[t["state"] for t in d]')
equal "['discarded', 'committed', 'active']" "$states" "states in the list"
contains "$(txfs -C ws list)" "$next"

# Offline, too.
echo third >mnt/third
txfs umount mnt
[ ! -e ws/third ] || fail "umount wrote to the workspace"
txfs -C ws commit
equal third "$(cat ws/third)" "what was committed offline"
txfs mount ws mnt
echo fourth >mnt/fourth
txfs umount mnt
txfs -C ws discard
txfs mount ws mnt
[ ! -e mnt/fourth ] || fail "discard offline left a file"
txfs umount mnt

# Whoever has a reply can send the next command at once: it finds the daemon of
# the transaction that has begun.
txfs mount ws mnt
for _ in $(seq 30); do txfs -C ws discard; done
txfs umount mnt

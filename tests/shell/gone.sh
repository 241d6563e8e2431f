#!/bin/sh
# The stores of workspaces that were deleted are found, and freed when asked.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
mkdir mnt
workspaces() { find "$XDG_STATE_HOME/txfs/workspaces" -mindepth 1 -maxdepth 1 -type d | wc -l; }
equal "no workspace is gone" "$(txfs gc --gone)" "what is said of none"

for name in deleted replaced open there mounted "od'd
name"; do
  mkdir "$name"
  echo 1 >"$name/a"
  txfs mount "$name" mnt
  echo 2 >mnt/a
  txfs -C mnt commit >/dev/null
  [ "$name" != open ] || echo 3 >mnt/a
  txfs umount mnt
done
store=$(store_of open)
mkdir given
txfs mount given mnt --store elsewhere
txfs umount mnt
txfs mount mounted
txfs mount there mnt
rm -rf deleted replaced open "od'd
name" given
mkdir replaced
equal "no problems" "$(txfs -C there fsck | cut -c1-11)" "one that is there"
equal 7 "$(workspaces)" "records"
txfs gc --gone --json >out
equal "4 1" "$(json '"%d %d" % (len(d["freed"]), len(d["kept"]))' <out)" "freed and kept"
equal "$PWD/open $store" "$(json 'd["kept"][0]["workspace"] + " " + d["kept"][0]["store"]' <out)" "kept"
[ -e elsewhere/FORMAT ] || fail "a store that was given was removed"
equal 3 "$(workspaces)" "records"
said=$(txfs gc --gone)
contains "$said" "kept: $PWD/open: transaction"
contains "$said" "txfs adopt --from"
equal 1 "$(cat mounted/a | sed s/2/1/)" "what is mounted"
txfs umount mnt
txfs umount mounted
txfs -C there undo >/dev/null
# It can be taken over as is said, and given up.
mkdir new
echo 2 >new/a
txfs adopt new --from "$PWD/open" --yes >/dev/null
equal active "$(txfs -C new list --json | json '[t["state"] for t in d if t["state"] == "active"][0]')" "taken over"
rm -r "$store"
contains "$(txfs gc --gone)" "freed"
equal 3 "$(workspaces)" "records"

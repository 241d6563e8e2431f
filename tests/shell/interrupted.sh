#!/bin/sh
# Commits that could not end, or not begin: whichever command comes next finishes
# one that its process died in, and says so; a full disk is told as such. And what
# is left of daemons that were killed.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
mkdir mnt

# interrupted: the workspace `ws` as it is when the last process died at the end
# of a commit, whose id is $id.
interrupted() {
  rm -rf ws
  mkdir -p ws/dir
  echo old >ws/a
  echo x >ws/dir/b
  txfs mount ws mnt 2>/dev/null
  echo new >mnt/a
  rm -r mnt/dir
  id=$(txfs -C mnt status --json | json 'd["id"]')
  txfs -C mnt commit >/dev/null
  txfs umount mnt 2>/dev/null
  store=$(store_of ws)
  rm -r "$store"/txn/*
  mv "$store/history/$id.plan" "$store/intent"
  rm "$store/history/$id"*
}

# finishes COMMAND...: says which commit it finished, and nobody says so again.
finishes() {
  interrupted
  "$@" >out 2>err || true
  contains "$(cat err)" "finished the interrupted commit $id"
  [ ! -e "$store/intent" ] || fail "$*: the intent is still there"
  txfs -C ws list >out 2>err
  [ ! -s err ] || fail "$*: said after all: $(cat err)"
  contains "$(cat out)" "$id  committed   undoable"
  txfs umount mnt 2>/dev/null || true
  txfs -C ws fsck >/dev/null
}
finishes txfs -C ws status
contains "$(txfs -C ws status 2>&1 || true)" "has no open transaction"
finishes txfs -C ws list
finishes txfs -C ws list --json
finishes txfs mount ws mnt
finishes txfs -C ws show 0
finishes txfs -C ws gc
finishes txfs -C ws commit
finishes txfs -C ws diff

# A daemon finds it.
interrupted
mv "$store/intent" "$store/vault" .
txfs mount ws mnt
rm -rf "$store/vault"
mv intent vault "$store/"
txfs -C mnt status >out 2>err
contains "$(cat err)" "finished the interrupted commit $id"
! grep -q finished out || fail "said on stdout"
equal new "$(cat mnt/a)" "after the commit"

# Killed daemons: status tells, and their sockets go with the mount. The one
# below the state directory: in the others, a daemon of another test that starts
# clears what is dead.
pid=$(txfs -C mnt status --json | json 'd["pid"]')
socket=$(json 'd["sockets"][-1]["path"]' <"$(echo "$store"/txn/*/daemon.json)")
[ -S "$socket" ] || fail "no socket at $socket"
kill -KILL "$pid"
ended "$pid"
contains "$(txfs -C ws status)" "$PWD/mnt (its daemon died"
equal "dead None" "$(txfs -C ws status --json | json 'd["daemon"], d["mountpoint"]' | tr -d "(),'")" "status as JSON"
[ -S "$socket" ] || fail "a question removed the socket"
txfs umount mnt
[ ! -e "$socket" ] || fail "the socket is still there"
txfs -C ws discard >/dev/null

# A commit that stopped half-way: what it did itself is no conflict.
txfs mount ws mnt
echo half >mnt/a
id=$(txfs -C mnt status --json | json 'd["id"]')
mkdir "$store/history/$id.image"
! txfs -C mnt commit >/dev/null 2>&1 || fail "committed without an image"
equal half "$(cat ws/a)" "half-way"
contains "$(txfs -C mnt status)" "stopped half-way: \`txfs commit\` continues it"
equal "committing []" "$(txfs -C mnt status --json | json '"{state} {conflicts}".format(**d)')" "half-way as JSON"
equal committing "$(txfs -C ws list --json | json "[t['state'] for t in d if t['id'] == '$id'][0]")" "half-way in the list"
rmdir "$store/history/$id.image"
contains "$(txfs -C mnt commit)" "committed $id"

# The same without a mount: it is listed as what it is, and the next mount that
# can finishes it.
echo again >mnt/a
id=$(txfs -C mnt status --json | json 'd["id"]')
mkdir "$store/history/$id.image"
! txfs -C mnt commit >/dev/null 2>&1 || fail "committed without an image"
txfs umount mnt
equal committing "$(txfs -C ws list --json 2>/dev/null | json "[t['state'] for t in d if t['id'] == '$id'][0]")" "half-way in the list, not mounted"
rmdir "$store/history/$id.image"
txfs mount ws mnt 2>err
contains "$(cat err)" "$id"
equal again "$(cat ws/a)" "what was finished"
txfs umount mnt

# What is told of an end.
txfs mount ws mnt --name gone
echo 1 >mnt/c
txfs -C mnt commit >/dev/null
txfs umount mnt >err 2>&1
contains "$(cat err)" "its transaction had no changes and is gone"
txfs mount ws mnt --name stays
echo 1 >mnt/d
txfs umount mnt >err 2>&1
contains "$(cat err)" "the transaction stays open"
for command in "status" "diff" "discard"; do
  refuses_with_hint 1 'no open transaction "nope"' txfs -C ws -t nope $command
  ! grep -q "No such file" "$TMPDIR/err" || fail "an errno behind a sentence"
done
refuses_with_hint 2 "a path is empty" txfs -C ws -t stays commit ''
refuses_with_hint 2 "a path is empty" txfs -C ws -t stays discard -- ''
refuses_with_hint 1 "changed nothing at a" txfs -C ws -t stays commit "$PWD/ws/a"
! grep -q "No such file" "$TMPDIR/err" || fail "an errno behind a sentence"

# A full disk.
needs_root
mkdir small store
mount -t tmpfs -o size=1M none small || skip "no tmpfs"
trap 'txfs umount mnt 2>/dev/null || true; umount small || umount -l small' EXIT
txfs mount --store "$PWD/store" small mnt
head -c 3M /dev/urandom >mnt/big
txn=$(txfs -C mnt status --json | json 'd["id"]')
refuses_with_hint 1 "nothing was committed (store $PWD/store)" txfs -C mnt commit
equal "$txn 1" "$(txfs -C mnt status --json | json 'd["id"], d["changes"]' | tr -d "(),'")" "after a full disk"
mount -o remount,size=8M small
contains "$(txfs -C mnt commit)" "1 change"
equal 3145728 "$(stat -c %s small/big)" "committed when there was space"

#!/bin/sh
# `txfs fsck`: sound stores, damaged ones, mounted ones; it never writes.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt

# state DIR: everything there is to see of a store, times included.
state() {
  find "$1" -printf '%P %y %m %n %s %T@ %C@\n' | LC_ALL=C sort
  find "$1" -type f -print0 | LC_ALL=C sort -z | xargs -0r sha256sum
}

# unchanged DIR COMMAND...: the command leaves the store as it is.
unchanged() {
  directory=$1
  shift
  state "$directory" >"$TMPDIR/before"
  status=0
  "$@" >"$TMPDIR/said" 2>"$TMPDIR/notes" || status=$?
  state "$directory" >"$TMPDIR/after"
  diff -u "$TMPDIR/before" "$TMPDIR/after" >&2 || fail "$*: wrote to $directory"
}

# A store in use, mounted elsewhere and over itself.
txfs mount ws mnt
echo new >mnt/new
head -c 3M /dev/urandom >mnt/big
mv mnt/src mnt/moved
ln mnt/big mnt/big2
rm mnt/docs/README
chmod 600 mnt/zeros
exec 3>mnt/held
echo held >&3
rm mnt/held
contains "$(txfs -C mnt fsck)" "no problems in 1 open transaction"
contains "$(txfs -C ws fsck)" "no problems"
exec 3>&-
txfs umount mnt
txfs mount ws
contains "$(txfs -C ws fsck)" "no problems"
equal "[]" "$(txfs -C ws fsck --json | json 'd["problems"]')" "problems in JSON"
txfs -C ws commit >/dev/null
contains "$(txfs -C ws fsck)" "no problems"
# What a commit took away gets checksums while the workspace is mounted.
rm ws/run.sh
txfs -C ws commit >/dev/null
while txfs -C ws fsck 2>&1 >/dev/null | grep -q 'no checksum yet'; do :; done
echo again >ws/again
head -c 100k /dev/urandom >ws/middle
txfs umount ws

# Nothing mounted.
store=$(store_of ws)
unchanged "$store" txfs -C ws fsck
equal 0 "$status" "exit code"
contains "$(cat "$TMPDIR/said")" "no problems in 1 open transaction"
unchanged "$store" txfs --store "$store" fsck --json
equal 0 "$status" "exit code"
equal 1 "$(json 'd["transactions"]' <"$TMPDIR/said")" "transactions"

# damaged KIND: the damaged store has a problem of that kind, and is not written
# to.
damaged() {
  unchanged "$store" txfs -C ws fsck
  equal 1 "$status" "exit code for $1"
  grep -q "^$1: " "$TMPDIR/said" || fail "no $1 in: $(cat "$TMPDIR/said")"
  unchanged "$store" txfs --store "$store" fsck --json
  equal 1 "$status" "exit code for $1"
  equal True "$(json "'$1' in [p['kind'] for p in d['problems']]" <"$TMPDIR/said")" \
    "$1 in JSON"
}
cp -a "$store" saved
# A copy that is made beside it has no inode number of it.
fresh() {
  cp -a saved "$store.copy"
  rm -rf "$store"
  mv "$store.copy" "$store"
  txn=$(echo "$store"/txn/*)
}

fresh
contains "$(txfs -C ws fsck)" "no problems"
contains "$(txfs -C ws fsck 2>&1)" "the store was copied or restored"
# A store that is foreign can be checked by its path alone.
contains "$(txfs --store saved fsck)" "no problems"
printf 'XXXX' | dd of="$(ls "$txn"/spool/* | head -n 1)" bs=1 seek=100 conv=notrunc status=none
damaged spool.content
fresh
taken=$(grep -rl 'echo hi' "$store/vault")
touch -r "$taken" "$TMPDIR/times"
printf 'X' | dd of="$taken" bs=1 seek=5 conv=notrunc status=none
touch -r "$TMPDIR/times" "$taken"
damaged commit.vault
fresh
truncate -s 20000 "$txn/db/data.mdb"
damaged tables.damaged
fresh
printf 'X' | dd of="$txn/intake" bs=1 seek=20 conv=notrunc status=none
damaged intake.header
fresh
rm "$txn/summary"
damaged store.transaction
fresh
printf 'X' >>"$txn/summary"
damaged store.summary
fresh
touch "$store/stranger"
damaged store.entry
fresh
echo "txfs store 2" >"$store/FORMAT"
damaged version

# A store that lies elsewhere is of the workspace that it names.
mkdir other
txfs mount --store elsewhere other mnt
txfs umount mnt
contains "$(txfs -C other fsck)" "no problems"
printf %s "$PWD" >elsewhere/workspace
status=0
said=$(txfs -C other fsck) || status=$?
equal 1 "$status" "exit code for another workspace"
contains "$said" "it names the workspace $PWD, not $PWD/other"

refuses 1 "cannot open the store" txfs --store nowhere fsck
mkdir plain
refuses_with_hint 1 "is not inside a txfs workspace" txfs -C plain fsck

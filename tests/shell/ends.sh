#!/bin/sh
# The ends of a transaction: paths after "--", nothing to commit, what is counted,
# what is kept.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt
txfs mount ws mnt

# open DIR: id of the transaction that is mounted there.
open() { txfs -C "$1" status --json | json 'd["id"]'; }
undoable() { txfs -C ws list --json | json 'sum(t["undoable"] for t in d)'; }

# Paths after "--" are paths.
txn=$(open mnt)
txfs -C mnt savepoint first >/dev/null
for name in a b -c; do echo new >"mnt/$name"; done
equal 1 "$(txfs -C mnt discard --json -- b | json 'd["changes"]')" "discard of a path"
equal "new new" "$(cat mnt/a mnt/-c | xargs)" "what was not discarded"
[ ! -e mnt/b ] || fail "discard -- PATH left it"
txfs -C mnt commit -- -c >out
contains "$(cat out)" "1 change; transaction $txn stays open"
equal new "$(cat ws/-c)" "commit -- PATH"
[ ! -e ws/a ] || fail "commit -- PATH committed the rest"
equal "$txn" "$(open mnt)" "the transaction goes on"
txfs -C mnt diff --name-status -- a | grep -q a || fail "diff -- PATH"
for command in status list log umount rollback undo show gc fsck version; do
  refuses 2 "no arguments after --" txfs -C mnt $command -- x
done
refuses_with_hint 2 "only a call has a command" txfs -C mnt savepoint -- x
equal new "$(cat mnt/a)" "after all that was refused"

# What is counted is what was committed; savepoints that go are named.
for n in 1 2 3 4 5; do echo "$n" >"mnt/f$n"; done
txfs -C mnt savepoint second >/dev/null
txfs -C mnt commit f1 --json >out
equal "1 True ['second']" "$(json 'd["changes"], d["partial"], d["savepoints_dropped"]' <out |
  tr -d '(),')" "a part as JSON"
part=$(json 'd["id"]' <out)
equal 1 "$(txfs -C mnt show "$part" --json | json 'd["changes"]')" "changes that show has"
equal 1 "$(txfs -C ws list --json | json "[t['changes'] for t in d if t['id'] == '$part'][0]")" \
  "changes that list has"
txfs -C mnt savepoint third >/dev/null
txfs -C mnt discard f2 >out 2>err
equal "discarded 1 change; transaction $txn stays open" "$(cat out)" "discard of a part"
contains "$(cat err)" "dropped 1 savepoint: third"

# The root's own attributes are at ".", too.
chmod 750 mnt
(cd mnt && txfs discard . --json) >out
equal 5 "$(json 'd["changes"]' <out)" "changes at and below ."
equal "" "$(txfs -C mnt diff --name-status)" "after discard ."
equal 755 "$(stat -c %a mnt)" "mode of the root after discard ."
chmod 750 mnt
(cd mnt && txfs commit . --json) >out
equal 1 "$(json 'd["changes"]' <out)" "changes of the root"
equal 750 "$(stat -c %a ws)" "mode of the root after commit ."
txfs -C mnt undo >/dev/null
equal 755 "$(stat -c %a ws)" "mode of the root after undo"
txfs umount mnt

# Nothing to commit: nothing happens, and nothing is pushed out of the history.
mkdir empty
echo 1 >empty/a
txfs mount empty mnt
echo 2 >mnt/a
txfs -C mnt commit -m real >/dev/null
txfs -C mnt savepoint kept >/dev/null
txn=$(open mnt)
for n in $(seq 51); do
  equal "nothing to commit" "$(txfs -C mnt commit)" "commit $n"
done
txfs -C mnt commit --json >out
equal "active 0 None $txn" "$(json 'd["state"], d["changes"], d["next"], d["id"]' <out |
  tr -d "(),'")" "nothing to commit as JSON"
equal kept "$(txfs -C mnt status --json | json 'd["savepoints"][0]["name"]')" "the savepoint"
equal 2 "$(txfs -C mnt list --json | json 'len(d)')" "the list"
# Times are worth a commit.
touch -d "2001-02-03 UTC" mnt/a
contains "$(txfs -C mnt commit)" "begun"
equal 981158400 "$(stat -c %Y empty/a)" "time after the commit"
txfs -C mnt undo >/dev/null
contains "$(txfs -C mnt undo)" "undone"
equal 1 "$(cat empty/a)" "after undo"
txfs umount mnt

# A mount keeps as much as it is told to, at once.
txfs mount --keep-commits 2 ws mnt
for n in 1 2 3 4; do
  echo "$n" >mnt/kept
  txfs -C mnt commit >/dev/null
done
contains "$(txfs -C mnt gc)" "0 commits"
equal 2 "$(undoable)" "commits kept"
for bad in -1 -5 99999999999999999999 x ""; do
  refuses 2 "keep-commits" txfs -C mnt gc --keep-commits "$bad"
  refuses 2 "keep-bytes" txfs -C mnt gc --keep-bytes "$bad"
  refuses 2 "keep-commits" txfs mount --keep-commits "$bad" ws mnt
done
contains "$(txfs -C mnt gc --keep-commits 2 --keep-bytes 1GiB)" "0 commits"
txfs umount mnt
txfs -C ws fsck >/dev/null

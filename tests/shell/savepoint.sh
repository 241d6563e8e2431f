#!/bin/sh
# Savepoints: made, listed, compared with, gone back to; mounted and not.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
needs git
make_workspace
mkdir mnt
txfs mount ws mnt

refuses_with_hint 1 "no savepoint" txfs -C mnt rollback
equal "savepoint sp1" "$(txfs -C mnt savepoint)" "first savepoint"
echo one >mnt/one
equal "savepoint sp2" "$(txfs -C mnt savepoint)" "second savepoint"
equal "savepoint before-refactor" "$(txfs -C mnt savepoint before-refactor)" "a name"
refuses_with_hint 1 'savepoint "before-refactor" already' \
  txfs -C mnt savepoint before-refactor
refuses_with_hint 1 'no savepoint "nonsense"' txfs -C mnt rollback nonsense
contains "$(cat "$TMPDIR/err")" "sp1, sp2, before-refactor"
refuses_with_hint 1 'no savepoint "nonsense"' txfs -C mnt diff --since nonsense

# status and log list them.
contains "$(txfs -C mnt status)" before-refactor
equal "['sp1', 'sp2', 'before-refactor']" \
  "$(txfs -C mnt status --json | json '[s["name"] for s in d["savepoints"]]')" names
equal True "$(txfs -C mnt status --json |
  json 'all(s["lsn"] > 0 and s["time"].endswith("Z") for s in d["savepoints"])')" rows
contains "$(txfs -C mnt log --op savepoint)" "savepoint  sp1"

# A good deal of everything, then its diff makes the copy of then the tree of now.
cp -a mnt before
cat >change <<'END'
echo more >>docs/README
mv src source
sed -i s/500/five-hundred/ source/deep/numbers
rm zeros
printf 'not executable\n' >run.sh
chmod 644 run.sh
ln -sfn src/main.c link
mkdir new
seq 300 >new/file
echo two >one
rm docs/hard-link
END
(cd mnt && sh -e ../change)
patched=$TMPDIR/patched
cp -a before "$patched"
txfs -C mnt diff --since before-refactor >patch
work=$PWD
(cd "$patched" && git apply "$work/patch")
for name in docs/README source/deep/numbers source/main.c run.sh new/file one; do
  cmp "mnt/$name" "$patched/$name" || fail "$name differs after git apply"
done
[ ! -e "$patched/zeros" ] && [ ! -e "$patched/src/main.c" ] ||
  fail "something deleted is left after git apply"
equal "$(readlink mnt/link)" "$(readlink "$patched/link")" "link"
names=$(txfs -C mnt diff --since before-refactor --name-status)
contains "$names" "one"
! txfs -C mnt diff --since before-refactor --name-status docs | grep -q numbers ||
  fail "diff --since PATH shows another path"
equal M "$(txfs -C mnt diff --since before-refactor --json |
  json '[c["status"] for c in d if c["path"] == "one"][0]')" "status since"
equal A "$(txfs -C mnt diff --json |
  json '[c["status"] for c in d if c["path"] == "one"][0]')" "status of all"
txfs -C mnt diff --since before-refactor --stat >/dev/null

# Back, with a shell that stands in what moves.
(
  cd mnt/source
  txfs rollback >"$TMPDIR/said"
  cd "$TMPDIR" || exit 1
)
contains "$(cat "$TMPDIR/said")" "rolled back to before-refactor"
same_tree before mnt manifest_with_times
equal "" "$(txfs -C mnt diff --since before-refactor)" "diff after the rollback"
contains "$(txfs -C mnt log --op rollback)" "before-refactor"
equal "$(txfs -C mnt status --json | json 'd["savepoints"][-1]["lsn"]')" \
  "$(txfs -C mnt log --json --op rollback | json 'd["offset"]')" "target in the log"

# Again, and over a remount.
(cd mnt && sh -e ../change)
txfs umount mnt
txfs mount ws mnt
cp -a mnt after
txfs -C mnt rollback sp1 >/dev/null
[ ! -e mnt/one ] || fail "rollback left a file"
equal "['sp1']" "$(txfs -C mnt status --json | json '[s["name"] for s in d["savepoints"]]')" \
  "names after going back to the first"
equal 0 "$(txfs -C mnt status --json | json 'd["changes"]')" changes

# Not mounted.
echo offline >mnt/offline
txfs umount mnt
equal "savepoint sp2" "$(txfs -C ws savepoint)" "savepoint offline"
txfs -C ws rollback sp1 | grep -q "1 operation\|operations" || fail "nothing undone"
txfs mount ws mnt
[ ! -e mnt/offline ] || fail "rollback offline left a file"

# SIGKILL after it was acknowledged.
echo kept >mnt/kept
txfs -C mnt savepoint kept
echo lost >mnt/kept
pid=$(txfs -C mnt status --json | json 'd["pid"]')
txfs -C mnt rollback kept
kill -9 "$pid"
txfs mount ws mnt 2>/dev/null
equal kept "$(cat mnt/kept)" "content after SIGKILL"

# They end with the transaction.
txfs -C mnt commit >/dev/null
equal 0 "$(txfs -C mnt status --json | json 'len(d["savepoints"])')" "savepoints left"
equal kept "$(cat ws/kept)" "what was committed"
txfs umount mnt

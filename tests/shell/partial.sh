#!/bin/bash
# Commit and discard of paths, on a real mount: who works in it goes on.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
mkdir -p ws/src ws/doc
echo one >ws/src/a
echo one >ws/src/b
echo one >ws/doc/c
echo one >ws/gone
txfs mount ws
cd ws
txfs savepoint before
echo two >src/a
echo two >src/b
mkdir -p new/deep
echo new >new/deep/file
echo other >new/other
mv doc moved
rm gone
exec 3>>src/b

txfs commit --dry-run src/a >"$TMPDIR/plan"
contains "$(cat "$TMPDIR/plan")" "src/a"
case $(cat "$TMPDIR/plan") in *src/b*) fail "the plan has what was not asked for" ;; esac
contains "$(txfs commit -m part src/a new/deep)" "stays open"
equal two "$(cat src/a)" "in the mount"
names=$(txfs diff --name-status | cut -c1 | tr -d '\n')
equal 5 "${#names}" "what is left: $(txfs diff --name-status)"
case $(txfs diff --name-status) in *src/a* | *deep*) fail "committed, and still a change" ;; esac
contains "$(txfs status)" "changes"
case $(txfs status) in *before*) fail "the savepoint is still there" ;; esac

# Both ends of a rename go together; what is open stays usable.
txfs discard doc >"$TMPDIR/said"
contains "$(cat "$TMPDIR/said")" "stays open"
equal one "$(cat doc/c)" "back where it was"
if [ -e moved ]; then fail "the other end of the rename is still there"; fi
echo three >&3
exec 3>&-
equal "two three" "$(tr '\n' ' ' <src/b | sed 's/ $//')" "written through the open file"

# It is all there when it is opened again.
cd ..
txfs umount ws
equal "two one" "$(cat ws/src/a) $(cat ws/src/b)" "the base after a partial commit"
equal new "$(cat ws/new/deep/file)" "a new directory that it needs"
if [ -e ws/new/other ]; then fail "the neighbour was committed, too"; fi
[ -e ws/gone ] || fail "the deletion was committed, too"
txfs mount ws
equal "other" "$(cat ws/new/other)" "the rest after a remount"
refuses_with_hint 1 "nothing at doc" txfs -C ws commit doc
refuses_with_hint 2 "only for a commit without paths" txfs -C ws commit --on-conflict=mine src/b
contains "$(cat "$TMPDIR/err")" "leave the paths out"

# The part is an entry of the history, and is taken back like any other.
contains "$(txfs -C ws list)" "part"
txfs -C ws undo >/dev/null
txfs -C ws commit -m rest src/b gone >/dev/null
txfs umount ws
equal "one two" "$(cat ws/src/a) $(head -1 ws/src/b)" "after undo and another part"
if [ -e ws/gone ]; then fail "the deletion was not committed"; fi
txfs -C ws fsck

# Every name of a file that was looked up leads to it, whichever other one went.
mkdir -p names/d mnt
echo x >names/c
ln names/c names/d/a
echo x >names/z
ln names/z names/y
txfs mount names mnt
mv mnt/d mnt/moved
stat mnt/c mnt/moved/a mnt/z mnt/y >/dev/null
rm mnt/c
mv mnt/z mnt/x
echo new >mnt/other
txfs -C mnt discard other >/dev/null
txfs -C mnt commit >/dev/null
equal "1 1 2 2" "$(stat -c %h mnt/moved/a names/moved/a mnt/y names/y | xargs)" "links after parts"
mv mnt/x mnt/w
txfs -C mnt discard >/dev/null
rm mnt/x
txfs -C mnt commit >/dev/null
equal "1 1" "$(stat -c %h mnt/y names/y | xargs)" "links after a discard"
txfs umount mnt

# One that meets a conflict is a part all the same.
mkdir -p mnt
txfs mount ws mnt
echo mine >mnt/src/a
echo theirs, and longer >ws/src/a
status=0
txfs -C mnt commit --json src/a >"$TMPDIR/said" || status=$?
equal 3 "$status" "the exit code of a conflict"
contains "$(cat "$TMPDIR/said")" '"partial": true'
txfs umount mnt

#!/bin/bash
# Several transactions on one workspace: isolated, chosen by name, id or place,
# committed in any order, and never stale.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir ws/d ws/gone
for i in $(seq 16); do echo base >"ws/d/f$i"; done
echo gone >ws/gone/file

# --- sixteen at once -----------------------------------------------------------
for i in $(seq 16); do
  mkdir "m$i"
  txfs mount ws "m$i" --name "t$i"
done
for i in $(seq 16); do
  echo "by $i" >"m$i/d/f$i"
  echo "by $i" >"m$i/new$i"
done
for i in $(seq 16); do
  equal base "$(cat "ws/d/f$i")" "the base before commit"
  j=$((i % 16 + 1))
  equal base "$(cat "m$j/d/f$i")" "f$i in another transaction"
  [ ! -e "m$j/new$i" ] || fail "new$i shows in another transaction"
  equal "t$i" "$(txfs -C "m$i" status --json | json 'd["name"]')" "name"
done
equal 16 "$(txfs -C ws list --json | json 'len([t for t in d if t["daemon"] == "running" and t["changes"] == 2])')" \
  "running transactions in the list"

# --- disjoint commits all land; the others see them at once ---------------------
for i in $(seq 16); do
  j=$((i % 16 + 1))
  # The kernel has all of this cached: attributes, content, names, their absence.
  stat "m$j/d/f$i" >/dev/null
  ls "m$j" >/dev/null
  [ ! -e "m$j/new$i" ]
  txfs -C "m$i" commit -m "by $i" >/dev/null
  equal "by $i" "$(cat "ws/d/f$i")" "what was committed"
  equal "by $i" "$(cat "m$j/d/f$i")" "what another transaction reads of it"
  equal "$(stat -c '%s %Y %a' "ws/d/f$i")" "$(stat -c '%s %Y %a' "m$j/d/f$i")" "stat"
  equal "by $i" "$(cat "m$j/new$i")" "a name that was known not to exist"
  contains "$(ls "m$j")" "new$i"
done
same_tree ws m1

# --- and all sixteen at the same time --------------------------------------------
for i in $(seq 16); do
  echo "again by $i" >"m$i/new$i"
  echo "by $i" >"m$i/more$i"
done
commits=
for i in $(seq 16); do
  txfs -C "m$i" commit -m "again by $i" >"committed$i" 2>&1 &
  commits="$commits $!"
done
i=0
for commit in $commits; do
  i=$((i + 1))
  wait "$commit" || fail "commit $i beside fifteen others: $(cat "committed$i")"
  contains "$(cat "committed$i")" "2 changes"
done
for i in $(seq 16); do
  equal "again by $i by $i" "$(cat "ws/new$i" "ws/more$i" | xargs)" "of commit $i"
  same_tree ws "m$i"
done
equal 32 "$(txfs -C ws list --json | json 'len([t for t in d if t["undoable"]])')" "commits that can be undone"
txfs -C ws fsck >/dev/null
for i in $(seq 3 16); do txfs umount "m$i"; done
equal 2 "$(txfs -C ws list --json | json 'len([t for t in d if t["state"] == "active"])')" \
  "open transactions: those that ended and were not used again are gone"

# --- every kind of change is seen ------------------------------------------------
for where in m1 m2; do find $where -exec stat {} + >/dev/null; cat $where/run.sh >/dev/null; done
cat m2/src/main.c >/dev/null
exec 5<m2/src/main.c
(cd m2/gone && exec sleep 1000) &
sleeper=$!
rm -r m1/gone
mv m1/src m1/source
chmod 700 m1/run.sh
echo more >>m1/run.sh
rm m1/link
mkdir m1/link
echo x >m1/link/x
ln -sfn elsewhere m1/docs/soft
touch -d 2001-02-03 m1/zeros
[ ! -e m2/docs/soft ]
txfs -C m1 commit -m kinds >/dev/null
same_tree ws m2 manifest_with_times
same_tree ws m1 manifest_with_times
[ ! -e m2/gone ]
[ ! -e m2/src ]
[ -d m2/link ]
cat <&5 >/dev/null
exec 5<&-
kill $sleeper
# What was deleted and made again is another one.
mkdir m1/gone
echo again >m1/gone/file
txfs -C m1 commit >/dev/null
equal again "$(cat m2/gone/file)" "a directory that came back"

# --- overlapping changes: the first wins, the second is told ---------------------
echo one >m1/d/f1
echo two >m2/d/f1
echo mine >m2/d/f2
txfs -C m1 commit >/dev/null
equal two "$(cat m2/d/f1)" "own changes stay"
refuses_with_hint 3 d/f1 txfs -C m2 commit
equal one "$(cat ws/d/f1)" "the base after a conflict"
equal "by 2" "$(cat ws/d/f2)" "nothing of it was committed"
txfs -C m2 discard >/dev/null
equal one "$(cat m2/d/f1)" "after discard"
# The same new name, the same new directory.
echo one >m1/made
echo two >m2/made
mkdir m1/dir m2/dir
echo 1 >m1/dir/1
echo 2 >m2/dir/2
txfs -C m1 commit >/dev/null
refuses 3 made txfs -C m2 commit
contains "$(cat "$TMPDIR/err")" dir
equal two "$(cat m2/made)" "own new file"
equal 2 "$(ls m2/dir)" "own new directory"
txfs -C m2 discard >/dev/null
equal 1 "$(ls m2/dir)" "the other's directory after discard"
# Deleted here, changed there; changed here, deleted there with all around it.
rm m1/d/f3
echo x >m2/d/f3
stat m2/docs/README m2/docs/hard-link >/dev/null
rm -r m1/docs
echo x >m2/docs/README
txfs -C m1 commit >/dev/null
equal x "$(cat m2/docs/README)" "what was changed in a directory that went"
equal "README
hard-link" "$(ls m2/docs)" \
  "what is left of it: the changed file with all names that were looked up"
refuses 3 d/f3 txfs -C m2 commit
grep -qE "^conflict: docs/(README|hard-link): deleted in" "$TMPDIR/err" || fail "no conflict of docs/README"
txfs -C m2 discard >/dev/null
same_tree ws m2

# Not mounted, a commit tells the others as well.
echo offline >m1/offline
txfs umount m1
[ ! -e m2/offline ]
txfs -C ws -t t1 commit >/dev/null
equal offline "$(cat m2/offline)" "what was committed without a mount"

# A large file of the base, partly changed and then replaced: the rest of it is
# what the other commit took out of the base, as long as that is kept.
txfs mount ws m1 --name t1
head -c 1000000 /dev/zero >m1/large
txfs -C m1 commit >/dev/null
printf x | dd of=m2/large bs=1 seek=500000 conv=notrunc status=none
head -c 1000000 /dev/zero | tr '\0' y >m1/fresh
mv m1/fresh m1/large
txfs -C m1 commit >/dev/null
head -c 1000000 /dev/zero >large
printf x | dd of=large bs=1 seek=500000 conv=notrunc status=none
cmp m2/large large || fail "two files were mixed"
refuses 3 large txfs -C m2 commit
txfs -C ws gc --keep-commits 0 >/dev/null
txfs umount m2
txfs mount ws m2 --name t2
if cat m2/large >/dev/null 2>"$TMPDIR/err"; then fail "two files were mixed"; fi
contains "$(cat "$TMPDIR/err")" Stale
txfs -C m2 discard >/dev/null
equal y "$(head -c 1 m2/large)" "after discard"

# A name that is gone with a conflict is gone for the kernel, too.
echo base >m1/taken
txfs -C m1 commit >/dev/null
echo mine >m2/taken
rm m1/taken
txfs -C m1 commit >/dev/null
txfs -C m2 commit --on-conflict=theirs >/dev/null
if stat m2/taken >/dev/null 2>&1; then fail "a name without a file"; fi
echo again >m2/taken
txfs -C m2 commit >/dev/null
equal again "$(cat ws/taken)" "a file where another one was"

# What takes the place of another file is missing where it was.
mv m1/taken m1/offline
equal "M	offline
D	taken" "$(txfs -C m1 diff --name-status)" "what changed"
txfs -C m1 discard >/dev/null

# A daemon that hangs does not hang a commit.
pid=$(txfs -C m2 status --json | json 'd["pid"]')
echo hung >m1/hung
# One that still finishes what it has committed holds the lock for it.
lock=$(stat -c %i "$(store_of ws)/lock")
for try in $(seq 5); do
  while grep -q ":$lock " /proc/locks; do :; done
  kill -STOP "$pid"
  start=$SECONDS status=0
  txfs -C m1 commit >/dev/null 2>&1 || status=$?
  [ $status -eq 6 ] || break
  kill -CONT "$pid"
done
equal 0 $status "exit code of a commit beside a daemon that hangs (try $try)"
[ $((SECONDS - start)) -lt 8 ] || fail "the commit waited for a daemon that hangs"
txfs -C ws list --json >list
equal "[None]" "$(json '[t["changes"] for t in d if t["pid"] == '"$pid]" <list)" "changes of one that hangs"
mkdir -p m3
txfs mount ws m3 --name t3
txfs umount m3
kill -CONT "$pid"
tries=0
until [ -e m2/hung ] || [ $tries -eq 2000 ]; do tries=$((tries + 1)); done
equal hung "$(cat m2/hung)" "it hears of it in the end"
txfs umount m1
txfs umount m2

#!/bin/bash
# The base changes under a transaction: found, told, and settled as the options
# say, mounted and not, by other programs and by other transactions.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse

# fresh: a new workspace `ws`, mounted at `mnt`; `f` has the lines 1 to 9.
fresh() {
  rm -rf ws mnt
  mkdir -p ws/d/s ws/e mnt
  seq 9 >ws/f
  seq 9 >ws/g
  echo deep >ws/d/x
  echo deeper >ws/d/s/y
  echo old >ws/other
  echo bare >ws/e/z
  txfs mount ws mnt >/dev/null
  find mnt -exec stat {} + >/dev/null # what a kernel has seen, it holds
  cat mnt/f mnt/g mnt/d/x mnt/other >/dev/null
}
done_with() { txfs umount mnt >/dev/null; }

# conflicting: both sides do one thing of each kind. `f` can be merged.
conflicting() {
  echo 10 >>mnt/f
  sed -i 's/^1$/eins/' mnt/g
  echo ours >mnt/made
  rm mnt/d/x
  echo more >>mnt/d/s/y
  rm -r mnt/e
  echo new >mnt/other

  sed -i 's/^1$/one/' ws/f
  sed -i 's/^1$/uno/' ws/g
  echo theirs >ws/made
  echo changed >ws/d/x
  rm -r ws/d/s
  rm -r ws/e
  echo file >ws/e
}
paths="d/s/y d/x e f g made"
told() {
  cat <<END
d/s/y: deleted in the workspace, modified in the transaction
d/x: changed in the workspace, deleted in the transaction
e: type changed in the workspace, deleted in the transaction
f: changed in the workspace, modified in the transaction
g: changed in the workspace, replaced in the transaction
made: created in the workspace, created in the transaction
END
}

# --- found and told ---------------------------------------------------------
for where in mnt ws; do
  fresh
  txfs -C mnt status | grep -q conflicts && fail "conflicts before there are any"
  conflicting
  if [ $where = ws ]; then done_with; fi
  copy_tree ws theirs
  txfs -C $where status >status || fail "status"
  contains "$(cat status)" "conflicts    6 paths of the workspace changed during the transaction"
  contains "$(cat status)" "f: changed in the workspace, modified in the transaction"
  contains "$(cat status)" "and 1 more (\`txfs status --json\` lists all)"
  contains "$(cat status)" "--on-conflict=mine"
  equal "$paths" "$(txfs -C $where status --json | json '" ".join(c["path"] for c in d["conflicts"])')" \
    "conflicts in status --json"

  refuses_with_hint 3 "6 paths" txfs -C $where commit
  equal "$(told)" "$(sed -n 's/^conflict: //p' "$TMPDIR/err")" "the list"
  status=0
  txfs -C $where commit --on-conflict=fail --json >out 2>err || status=$?
  equal 3 "$status" "exit code with --json"
  equal "active None $paths" \
    "$(json '" ".join([d["state"], str(d["next"])] + [c["path"] for c in d["conflicts"]])' <out)" "JSON"
  equal "changed modified None" \
    "$(json '"{reason} {ours} {note}".format(**d["conflicts"][3])' <out)" "both sides in JSON"
  same_tree theirs ws manifest_with_times

  # Merging settles one of them and so none: nothing is touched.
  refuses_with_hint 3 "5 paths" txfs -C $where commit --on-conflict=merge
  contains "$(cat "$TMPDIR/err")" "g: changed in the workspace, replaced in the transaction (does not merge)"
  same_tree theirs ws manifest_with_times
  if [ $where = mnt ]; then done_with; fi
  rm -rf theirs
done

refuses 2 "--on-conflict" txfs -C ws commit --on-conflict=yours
refuses_with_hint 2 "--dry-run" txfs -C ws commit --dry-run --on-conflict=mine
refuses_with_hint 2 "--markers" txfs -C ws commit --markers
refuses_with_hint 2 "--markers" txfs -C ws commit --markers --on-conflict=mine

# --- one side -----------------------------------------------------------------
# mine: what the workspace has after --on-conflict=mine; theirs: the other way.
mine() {
  equal 10 "$(tail -n 1 ws/f)" "our line"
  equal 1 "$(head -n 1 ws/f)" "not their line"
  equal eins "$(head -n 1 ws/g)" "our line"
  equal ours "$(cat ws/made)" "our new file"
  [ ! -e ws/d/x ] || fail "what we deleted is there"
  equal "deeper
more" "$(cat ws/d/s/y)" "what they deleted"
  [ ! -e ws/e ] || fail "what we deleted is there"
}
theirs() {
  equal "one 9" "$(head -n 1 ws/f) $(tail -n 1 ws/f)" "their file"
  equal uno "$(head -n 1 ws/g)" "their line"
  equal theirs "$(cat ws/made)" "their new file"
  equal changed "$(cat ws/d/x)" "what they changed"
  [ ! -e ws/d/s ] || fail "what they deleted is there"
  equal file "$(cat ws/e)" "their file in place of a directory"
}
for side in mine theirs; do
  for where in mnt ws; do
    fresh
    conflicting
    if [ $where = ws ]; then done_with; fi
    txfs -C $where commit --on-conflict=$side -m $side >out 2>err || fail "$side: $(cat err)"
    equal "$(told)" "$(sed -n 's/^resolved: //p' err)" "what was settled"
    $side
    equal new "$(cat ws/other)" "what was in nobody's way"
    if [ $where = ws ]; then txfs mount ws mnt >/dev/null; fi
    # What the kernel knew of either side is not shown any more.
    same_tree ws mnt manifest_with_times
    contains "$(txfs -C mnt status)" "nothing changed"
    contains "$(txfs -C mnt fsck)" "no problems"
    done_with
  done
done

# --- merging ------------------------------------------------------------------
fresh
echo 10 >>mnt/f
chmod 600 mnt/other
sed -i 's/^1$/one/' ws/f
echo changed >ws/other
txfs -C mnt commit --on-conflict=merge --json >out 2>/dev/null
equal "committed f other" \
  "$(json '" ".join([d["state"]] + [c["path"] for c in d["resolved"]])' <out)" "what was merged"
{ echo one; seq 2 10; } >expected
cmp expected ws/f
cmp expected mnt/f
equal "changed 600" "$(cat ws/other) $(stat -c %a ws/other)" "content and mode of different sides"
done_with

# --- what the kernel has cached -------------------------------------------------
# It had the transaction's side, of a file of which the outcome has other bytes.
# outcome FILE WAY: what was read before the commit is not shown after it.
outcome() {
  txfs -C mnt commit --on-conflict="$2" >/dev/null 2>err || fail "$2: $(cat err)"
  cmp "ws/$1" "mnt/$1" || fail "$1 after $2"
  same_tree ws mnt manifest_with_times
  # A commit that found nothing to do is not there to be undone.
  commits=$(txfs -C mnt list --json | json 'sum(t["undoable"] for t in d)')
  # Who goes on from what the mount shows destroys nothing.
  before=$(wc -l <"ws/$1")
  sed -i '$a more' "mnt/$1"
  txfs -C mnt commit >/dev/null
  equal "$((before + 1))" "$(wc -l <"ws/$1")" "lines of $1 after $2"
  contains "$(txfs -C mnt fsck)" "no problems"
  txfs -C mnt undo >/dev/null
  [ "$commits" -eq 0 ] || txfs -C mnt undo >/dev/null
  same_tree theirs ws manifest_with_times
  same_tree ws mnt manifest_with_times
  done_with
  rm -rf theirs
}
for way in mine merge theirs; do
  for ours in 'chmod 600 mnt/f' 'mv mnt/f mnt/f2' 'ln mnt/f mnt/f2' 'echo 10 >>mnt/f' \
    'chmod 600 mnt/f; chmod 644 mnt/f'; do
    fresh
    eval "$ours"
    cat mnt/f* >/dev/null
    sed 's/^1$/one-by-them/' ws/g >ws/f
    copy_tree ws theirs
    file=f
    if [ $way != theirs ] && [ ! -e mnt/f ]; then file=f2; fi
    outcome $file $way
  done
done

# Markers only when asked for; then they are in the transaction, not in the base.
for where in mnt ws; do
  fresh
  echo 10 >>mnt/f
  sed -i 's/^1$/eins/' mnt/g
  sed -i 's/^1$/one/' ws/f
  sed -i 's/^1$/uno/' ws/g
  copy_tree ws theirs
  if [ $where = ws ]; then done_with; fi
  refuses_with_hint 3 "--markers" txfs -C $where commit --on-conflict=merge
  refuses_with_hint 3 "has conflict markers now" txfs -C $where commit --on-conflict=merge --markers
  contains "$(cat "$TMPDIR/err")" "hint: edit the files that have conflict markers, then commit again"
  same_tree theirs ws manifest_with_times
  if [ $where = ws ]; then txfs mount ws mnt >/dev/null; fi
  equal "<<<<<<< transaction
eins
=======
uno
>>>>>>> workspace
2" "$(head -n 6 mnt/g)" "markers in the mount"
  cmp expected mnt/f
  # Edited, it goes through: the workspace's side was taken into account.
  { echo both; seq 2 9; } >mnt/g
  txfs -C mnt commit >/dev/null
  equal both "$(head -n 1 ws/g)" "the edited file"
  cmp expected ws/f
  same_tree ws mnt manifest_with_times
  done_with
  rm -rf theirs
done

# What is no text, or too large to have been kept, is not merged.
fresh
head -c 1000 /dev/zero >ws/zeros
head -c 1M /dev/zero | tr '\0' x >ws/large
printf y >>mnt/zeros
printf y >>mnt/large
await_tick
printf z | dd of=ws/zeros conv=notrunc status=none
printf z | dd of=ws/large conv=notrunc status=none
refuses 3 "zeros: changed in the workspace, modified in the transaction (is not text)" \
  txfs -C mnt commit --on-conflict=merge
contains "$(cat "$TMPDIR/err")" "large: changed in the workspace, modified in the transaction (its earlier content is not kept)"
refuses_with_hint 3 "is not text" txfs -C mnt commit --on-conflict=merge --markers
contains "$(cat "$TMPDIR/err")" "hint: --on-conflict=mine or =theirs"
# Written anew, nothing of the old is needed.
echo all ours >mnt/large
txfs -C mnt commit --on-conflict=mine >/dev/null 2>&1
equal "all ours" "$(cat ws/large)" "a file that was written anew"
equal 1001 "$(stat -c %s ws/zeros)" "a file that was appended to"
done_with

# --- the daemon is killed -----------------------------------------------------
# What it acknowledged it remembers, and what to compare it with.
fresh
conflicting
pid=$(txfs -C mnt status --json | json 'd["pid"]')
kill -KILL "$pid"
ended "$pid"
txfs mount ws mnt >/dev/null
contains "$(txfs -C mnt fsck)" "no problems"
refuses 3 "6 paths" txfs -C mnt commit
txfs -C mnt commit --on-conflict=mine >/dev/null 2>&1
mine
done_with

# --- two transactions ---------------------------------------------------------
fresh
done_with
mkdir a b
txfs mount ws a --name a >/dev/null
txfs mount ws b --name b >/dev/null
cat a/f b/f >/dev/null
# Disjoint: different files of one directory, new names in it, attributes.
echo a >a/d/from-a
echo changed >a/d/x
echo b >b/d/from-b
echo changed >b/d/s/y
chmod 700 b/d
txfs -C a commit >/dev/null
txfs -C b commit >/dev/null
equal "a b changed changed 700" \
  "$(cat ws/d/from-a ws/d/from-b ws/d/x ws/d/s/y | xargs) $(stat -c %a ws/d)" "disjoint changes"
same_tree a b manifest_with_times
# The same file: the first wins, the other one learns of it, and merges.
sed -i 's/^1$/one/' a/f
echo 10 >>b/f
echo a >a/both
echo b >b/both
txfs -C a commit >/dev/null
contains "$(txfs -C b status)" "f: changed in the workspace, modified in the transaction"
refuses 3 "2 paths" txfs -C b commit
refuses 3 "1 path " txfs -C b commit --on-conflict=merge
equal a "$(cat ws/both)" "the first one's file"
equal 9 "$(tail -n 1 ws/f)" "nothing was merged while something was left"
mv b/both b/other-name
refuses 3 "both: created in the workspace, deleted in the transaction" txfs -C b commit
refuses_with_hint 3 "both: created in the workspace" txfs -C b commit both
contains "$(cat "$TMPDIR/err")" "hint: leave the paths out"
refuses_with_hint 3 "both: created in the workspace" txfs -C b commit --dry-run both
contains "$(cat "$TMPDIR/err")" "hint: leave the paths out"
txfs umount a
txfs umount b

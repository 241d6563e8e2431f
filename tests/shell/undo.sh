#!/bin/sh
# Commits taken back: exactly, again and again, mounted and not, or refused with
# the reason; and what is kept for it.
. "$TXFS_SOURCE_DIR/tests/shell/common"
needs_fuse
make_workspace
mkdir mnt

# change DIR: changes of every kind.
change() {
  echo changed >>"$1/src/main.c"
  mv "$1/src" "$1/source"
  mkdir -p "$1/new/deep"
  echo fresh >"$1/new/deep/file"
  rm -r "$1/docs"
  rm "$1/link"
  mkdir "$1/link"
  chmod 700 "$1/run.sh"
  ln "$1/zeros" "$1/more-zeros"
  touch -d 2001-02-03 "$1/source/deep/numbers"
}

# member TXN EXPRESSION: of an entry of the list, as `t`.
member() {
  txfs -C ws list --json | json "[($2) for t in d if t['id'] == '$1'][0]"
}

cp -a ws before
txfs mount ws mnt
change mnt
id=$(txfs -C mnt status --json | json 'd["id"]')

# A dry run says what would be done, and does nothing.
store_state() {
  find ws/.txfs -path '*/txn/*' -prune -o -path '*/trash*' -prune -o -name 'blank*' -prune -o -type f -print0 | sort -z |
    xargs -0r sha256sum
}
store_state >store.before
txfs -C mnt commit --dry-run >plan
txfs -C mnt commit --dry-run --json >plan.json
same_tree before ws manifest_with_times
store_state | diff store.before - || fail "a dry run changed the store"
for line in "move src/ to source/" "replace source/main.c" "delete docs/" "delete link" \
  "create link/" "create new/ and 2 in it" "set attributes of run.sh" "link more-zeros"; do
  grep -qFx "$line" plan || fail "no step '$line' in: $(cat plan)"
done
equal "$(grep -c . plan)" "$(json 'len(d["steps"])' <plan.json)" "steps as JSON"
equal "[]" "$(json 'd["conflicts"]' <plan.json)" "conflicts of the plan"

txfs -C mnt diff --name-status >diff.names
txfs -C mnt diff >diff.patch
txfs -C mnt commit -m "everything" >out
copy_tree ws after
equal "True transaction" "$(member "$id" 't["undoable"], t["kind"]' | tr -d "(),'")" "after the commit"
equal "$(id -un)" "$(member "$id" 't["author"]')" "author"
contains "$(txfs -C mnt list)" undoable

# What it changed, mounted and not.
shows() {
  txfs -C "$1" show "$id" --name-status >names
  contains "$(cat names)" everything
  # The diff of the commit is what the diff of the transaction was.
  sed '1,/^    everything/d' names | sed 1d | diff -u diff.names - >&2 || fail "other names"
  for line in "R[0-9]*	src/main.c	source/main.c" "A	new/deep/file" "D	docs/README" \
    "T	link/" "M	run.sh" "A	more-zeros" "R100	src/deep/numbers	source/deep/numbers"; do
    grep -qx "$line" names || fail "no line '$line' in: $(cat names)"
  done
  txfs -C "$1" show "$id" >patch
  sed '1,/^    everything/d' patch | sed 1d | diff -u diff.patch - >&2 || fail "another patch"
  for line in "+changed" "+fresh" "-read me" "rename from src/main.c"; do
    grep -qFx -- "$line" patch || fail "no line '$line' in: $(cat patch)"
  done
  contains "$(txfs -C "$1" show "$id" --stat)" "source/main.c"
  txfs -C "$1" show "$id" --json >show.json
  equal "everything" "$(json 'd["message"]' <show.json)" message
  equal True "$(json 'len(d["diff"]) > 5 and d["lost"] == []' <show.json)" diff
}
shows mnt
txfs umount mnt
shows ws

# Not mounted, from elsewhere; the beginning of an id will do.
txfs -C ws/new undo "$(printf %.11s "$id")" >out || txfs -C ws/new undo "$id" >out
contains "$(cat out)" "undone $id"
undo=$(sed -n 's/.*txfs undo \([0-9a-f]*\).*/\1/p' out)
same_tree before ws manifest_with_times
equal "$undo" "$(member "$id" 't["undone_by"]')" undone_by
equal "False" "$(member "$id" 't["undoable"]')" "an undone commit"
equal "undo $id" "$(member "$undo" 't["kind"], t["of"]' | tr -d "(),'")" "the undo"
shows ws
txfs -C ws show "$undo" --name-status >names
grep -qx "A	docs/README" names || fail "the undo shows: $(cat names)"
refuses_with_hint 1 "was undone by $undo" txfs -C ws undo "$id"
refuses_with_hint 1 "there is no commit to undo" txfs -C ws undo
contains "$(cat "$TMPDIR/err")" "txfs undo $undo"

# The undo of the undo; mounted, and the mount shows it.
txfs mount ws mnt
txfs -C mnt undo "$undo" --json >out.json
redo=$(json 'd["id"]' <out.json)
equal "$undo" "$(json 'd["undone"]' <out.json)" undone
same_tree after ws manifest_with_times
shows mnt
equal "True" "$(member "$redo" 't["undoable"]')" "the second undo"
# It did again what the commit did, and so is what comes to be undone next.
contains "$(txfs -C mnt undo)" "undone $redo"
same_tree before ws manifest_with_times
txfs umount mnt

# Refused, with the list, and nothing done.
txfs mount ws mnt
echo one >mnt/one
rm mnt/zeros
third=$(txfs -C mnt status --json | json 'd["id"]')
txfs -C mnt commit >/dev/null
txfs umount mnt
echo two >ws/one
copy_tree ws drifted
refuses_with_hint 3 "nothing was undone: 1 path" txfs -C ws undo
contains "$(cat "$TMPDIR/err")" "conflict: one: changed"
status=0
txfs -C ws undo --json >out.json 2>/dev/null || status=$?
equal 3 "$status" "exit code with --json"
equal "one changed None" "$(json 'd["conflicts"][0]["path"], d["conflicts"][0]["reason"], d["id"]' <out.json | tr -d "(),'")" "conflict as JSON"
same_tree drifted ws manifest_with_times
txfs -C ws show "$third" --name-status >names 2>err
grep -qx "A	one" names || fail "a drifted path is not shown: $(cat names)"
txfs -C ws show "$third" >patch 2>err
contains "$(cat err)" "one was changed in the workspace since"
! grep -q two patch || fail "shows what others wrote"
equal "one" "$(txfs -C ws show "$third" --json | json 'd["lost"][0]["path"]')" lost

# A directory with one in it that became something else.
mkdir -p was/d/s was/e/s
echo 1 >was/d/s/f
echo 1 >was/e/s/f
txfs mount was mnt
rm -r mnt/d mnt/e
echo x >mnt/d
ln -s d mnt/e
became=$(txfs -C mnt status --json | json 'd["id"]')
txfs -C mnt diff --name-status >diff.became
txfs -C mnt commit >/dev/null
txfs -C mnt show "$became" --name-status | sed '1,/^$/d' | diff -u diff.became - >&2 ||
  fail "show of a directory that became a file"
contains "$(txfs -C mnt show "$became")" "+x"
txfs -C mnt undo >/dev/null
equal "1 1" "$(cat was/d/s/f was/e/s/f | xargs)" "directories that came back"
txfs umount mnt

# Ids.
refuses_with_hint 2 "several ids begin with 0: " txfs -C ws undo 0
refuses_with_hint 1 "there is no transaction \"fff\"" txfs -C ws show fff
open=$(txfs -C ws status --json | json 'd["id"]')
txfs -C ws show "$open" 2>err >out
contains "$(cat err)" "txfs diff"
txfs -C ws discard >/dev/null
contains "$(txfs -C ws show "$open" 2>&1)" discarded
equal None "$(txfs -C ws show "$open" --json | json 'd["diff"]')" "diff of a discarded one"

# Freed: what was committed stays in the list, and cannot be undone.
equal True "$(txfs -C ws gc --keep-commits 1 --json | json 'd["bytes"] >= 0')" gc
store=$(store_of ws)
before=$(du -s "$store" | cut -f 1)
contains "$(txfs -C ws gc --keep-bytes 0)" "can no longer be undone"
[ "$(du -s "$store" | cut -f 1)" -le "$before" ] || fail "gc made the store grow"
[ -z "$(ls -A "$store/vault")" ] || fail "gc left a vault"
equal False "$(member "$third" 't["undoable"]')" "after gc"
refuses_with_hint 1 "no longer kept" txfs -C ws undo "$third"
refuses_with_hint 1 "there is no commit to undo" txfs -C ws undo
contains "$(txfs -C ws show "$third" 2>&1)" "no longer kept"
contains "$(txfs -C ws gc)" "0 commits"

# A mount keeps what it is told to keep.
txfs mount --keep-commits 1 ws mnt
echo a >mnt/a
txfs -C mnt commit >/dev/null
echo b >mnt/b
txfs -C mnt commit >/dev/null
contains "$(txfs -C mnt gc)" "0 commits"
equal 1 "$(txfs -C mnt list --json | json 'sum(t["undoable"] for t in d)')" "commits kept"
refuses 2 "keep-bytes" txfs mount --keep-bytes much ws mnt
txfs -C mnt undo >/dev/null
[ ! -e ws/b ] || fail "undo left b"
txfs umount mnt

# Mounted over itself, where only the daemon reaches store and base.
mkdir over
echo 1 >over/f
txfs mount over
echo 2 >over/f
txfs -C over commit -m two >/dev/null
contains "$(txfs -C over list)" "undoable"
contains "$(txfs -C over show 0 2>&1 || true)" "several ids begin with"
over=$(txfs -C over list --json | json 'd[0]["id"]')
contains "$(txfs -C over show "$over")" "+2"
contains "$(txfs -C over gc)" "0 commits"
txfs -C over undo >/dev/null
txfs umount over
equal 1 "$(cat over/f)" "after an undo beneath a mount"

# With several transactions, every mount shows at once what an undo brought back.
# A name means the newest commit under it.
mkdir many ma mb
echo old >many/f
cp -a many many.before
txfs mount many ma --name a
txfs mount many mb --name b
echo new >ma/f
mkdir ma/dir
echo x >ma/dir/x
first=$(txfs -C ma status --json | json 'd["id"]')
txfs -C ma commit -m "by a" >/dev/null
copy_tree many many.after
equal "new x" "$(cat mb/f mb/dir/x | xargs)" "the commit in the other mount"
txfs -C mb -t a undo --json >out.json
equal "$first" "$(json 'd["undone"]' <out.json)" "the commit that a name means"
for where in many ma mb; do same_tree many.before "$where" manifest_with_times; done
refuses_with_hint 1 "was undone by" txfs -C mb undo a
txfs -C many -t "$(json 'd["id"]' <out.json)" undo >out
for where in many ma mb; do same_tree many.after "$where" manifest_with_times; done
contains "$(txfs -C many show a)" "by a"
contains "$(txfs -C mb -t "$first" show)" "+new"
refuses_with_hint 2 "given twice" txfs -C ma -t a undo a
refuses_with_hint 2 "the name or id of the transaction is empty" txfs -C ma undo ""
refuses_with_hint 2 "needs a transaction" txfs -C ma show
refuses 2 "takes no -t" txfs -C ma -t a gc
refuses 2 "takes no -t" txfs -C ma -t a fsck
refuses 2 "takes no -t" txfs -C ma -t a version
# What is open stays so, and learns of it as of any commit.
echo mine >mb/f
txfs -C many undo "$(sed -n 's/.*txfs undo \([0-9a-f]*\).*/\1/p' out)" >/dev/null
equal "mine old" "$(cat mb/f ma/f | xargs)" "an undo beneath open changes"
refuses_with_hint 3 "f" txfs -C mb commit
txfs umount ma
txfs -C many -t b discard >/dev/null

# Beneath the mount of another transaction.
txfs mount many --name over
echo 2 >mb/f
txfs -C mb commit >/dev/null
equal 2 "$(cat many/f)" "the commit beneath the mount"
txfs umount mb
txfs -C many undo b >/dev/null
equal old "$(cat many/f)" "the undo beneath the mount"
txfs umount many
same_tree many.before many manifest_with_times

# What was discarded, and what was undone for good, leaves nothing behind.
# The directory of vaults stays once it is there.
files() { (cd "$(store_of "$1")" && find . -mindepth 1 ! -path ./vault -printf '%P\n' | LC_ALL=C sort); }
mkdir clean
echo 1 >clean/f
txfs mount clean mnt --name x
txfs umount mnt
txfs -C clean -t x discard >/dev/null
txfs -C clean gc >/dev/null
files clean >files.before
txfs mount clean mnt --name x
echo 2 >mnt/f
head -c 1000000 /dev/zero >mnt/large
txfs -C mnt discard >/dev/null
mkdir mnt/d
echo 3 >mnt/f
txfs -C mnt commit >/dev/null
txfs -C mnt undo >/dev/null
contains "$(txfs -C mnt gc)" "1 discarded or undone transaction forgotten"
txfs umount mnt
txfs -C clean gc --keep-commits 0 --json >out.json
equal "1 2" "$(json 'd["commits"], d["forgotten"]' <out.json | tr -d '(),')" "what gc forgot"
equal True "$(json 'd["bytes"] > 0' <out.json)" "what gc freed"
files clean | diff files.before - || fail "something is left in the store"
equal 1 "$(cat clean/f)" "after all that"
txfs -C clean fsck >/dev/null
